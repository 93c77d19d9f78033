"""What each process of the host is: trainer, engine, launcher … or nothing of a job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from watchdog.discovery.processes import Seen, ancestors
from watchdog.discovery.titles import role_by_process_name
from watchdog.evidence import Role
from watchdog.guest.own_threads import NAME
from watchdog.sentinel.run_roster import ENGINE_PROGRAM

_TRAINING_PROGRAM = re.compile(r"(?:^|[./\w])(?:train|main_ppo|grpo|ppo|rl|sft)\w*(?:\.py)?(?: |$)")
# What looks at a job is no part of it.
_WATCHERS = re.compile(r"(?:miles-watchdog|watchdog\.|py-spy|py\.?test)(?:\b|$)")
# Helpers of Python's own multiprocessing, which never say anything of a hang.
_HELPERS = re.compile(r"multiprocessing[./](?:resource_tracker|forkserver)")
# They start one program and wait for its end, whatever becomes of it.
_WRAPPERS = re.compile(
    r"-?(?:busybox|(?:ba|da|a|z|k|fi)?sh|timeout|env|nice|ionice|chrt|nohup|setsid|stdbuf|time"
    r"|sudo|su|tini|dumb-init|docker-init|catatonit|numactl|taskset|prlimit|flock|script"
    r"|unshare|nsenter|chroot)"
)
_SENTINEL = "miles-watchdog-sentinel"
_WORLD = ("RANK", "WORLD_SIZE")


@dataclass(frozen=True)
class Part:
    """What one process is.

    Attributes:
        role: Its part in the job.
        by: How one sees that, a few words.
    """

    role: Role
    by: str


def parts(everything: Mapping[int, Seen]) -> dict[int, Part]:
    """The processes that are part of some job, by pid.

    Strongest sign first: the title; what the launcher put into the environment; the program.
    An inherited `RANK` makes no trainer: of a chain of processes with the same one, the first
    Python is the rank, what it started is its child.
    """
    found: dict[int, Part] = {}
    for pid, one in everything.items():
        part = _own(one)
        if part is not None:
            found[pid] = part
    ranked = _topmost_ranked(everything, found)
    for pid in ranked:
        found[pid] = Part("trainer", "RANK and WORLD_SIZE in its environment")
    for pid, one in everything.items():
        if pid not in found and not is_watcher(one) and is_engine_program(one):
            found[pid] = Part("engine", f"it runs {one.program}")
    _add_zombies(everything, found)
    _add_launchers(everything, found)
    _add_engine_children(everything, found)
    return dict(sorted(found.items()))


def is_helper(one: Seen) -> bool:
    """Whether it is a helper process of Python's multiprocessing."""
    return _HELPERS.search(one.line) is not None


def is_wrapper(one: Seen) -> bool:
    """Whether it only starts another program and waits: a shell, `timeout`, `env` ..."""
    first = one.words[0].rsplit("/", 1)[-1] if one.words else one.name
    return _WRAPPERS.fullmatch(first) is not None


def is_watcher(one: Seen) -> bool:
    """Whether it only looks at jobs: this program, py-spy, a test runner."""
    if one.name == NAME:
        return True
    first = one.words[0].rsplit("/", 1)[-1] if one.words else ""
    # The sentinel is started by `python -c`, with its name as the first argument.
    return _WATCHERS.match(one.program or first) is not None or _SENTINEL in one.words


def _own(one: Seen) -> Part | None:
    if is_watcher(one) or not one.words:
        return None
    if one.has_title:
        role = role_by_process_name(one.line)
        return Part(role, "its process title") if role and role != "other" else None
    name = one.program if one.is_python else _console_script(one)
    if not name:
        return None
    role = role_by_process_name(name)
    if role in ("launcher", "engine", "engine_worker", "driver"):
        return Part(role, f"it runs {name}")
    return None


def _console_script(one: Seen) -> str:
    """`srun`, `vllm serve` … started without Python in the command line; "" for a shell."""
    first = one.words[0].rsplit("/", 1)[-1] if one.words else ""
    known = ("torchrun", "srun", "accelerate", "vllm", "trl", "mpirun")
    return " ".join((first, *one.words[1:2])) if first in known else ""


def _is_ranked(one: Seen) -> bool:
    return all(one.variable(name).isdigit() for name in _WORLD) and one.is_python


def _topmost_ranked(everything: Mapping[int, Seen], found: Mapping[int, Part]) -> list[int]:
    ranked = {
        pid
        for pid, one in everything.items()
        if _is_ranked(one) and not is_watcher(one) and not is_helper(one)
        and (pid not in found or found[pid].role == "trainer")
    }  # fmt: skip
    # Some clusters set RANK for a whole container, meaning its number among the nodes; then
    # only what a launcher gave a LOCAL_RANK is a rank of the job.
    local = {pid for pid in ranked if everything[pid].variable("LOCAL_RANK")}
    under = {pid for pid in ranked if _launcher_above(everything, found, pid)}
    if local and under:
        ranked = {pid for pid in ranked if pid in local or everything[pid].has_title}
    return [pid for pid in sorted(ranked) if not _inherited(everything, ranked, pid)]


def _launcher_above(everything: Mapping[int, Seen], found: Mapping[int, Part], pid: int) -> bool:
    return any(
        above in found and found[above].role == "launcher" for above in ancestors(everything, pid)
    )


def _inherited(everything: Mapping[int, Seen], ranked: set[int], pid: int) -> bool:
    def place(one: int) -> tuple[str, ...]:
        names = (*_WORLD, "MASTER_ADDR", "MASTER_PORT")
        return tuple(everything[one].variable(name) for name in names)

    return any(
        above in ranked and place(above) == place(pid) for above in ancestors(everything, pid)
    )


def _add_zombies(everything: Mapping[int, Seen], found: dict[int, Part]) -> None:
    """A zombie has neither command line nor environment left: its siblings tell what it was."""
    parents = {
        everything[pid].parent: everything[pid].name
        for pid, part in found.items()
        if part.role == "trainer"
    }
    for pid, one in everything.items():
        if one.state == "Z" and one.parent in parents and one.is_python and pid not in found:
            found[pid] = Part("trainer", "a zombie whose siblings are ranks")


def _add_launchers(everything: Mapping[int, Seen], found: dict[int, Part]) -> None:
    trainers = [pid for pid, part in found.items() if part.role == "trainer"]
    for pid in trainers:
        parent = everything.get(everything[pid].parent)
        if parent is None or parent.pid in found or is_watcher(parent):
            continue
        if parent.is_python and not parent.has_title:
            found[parent.pid] = Part("launcher", "it started the ranks")


def _add_engine_children(everything: Mapping[int, Seen], found: dict[int, Part]) -> None:
    for pid, one in everything.items():
        if pid in found or not one.is_python or is_helper(one) or is_watcher(one):
            continue
        above = next((each for each in ancestors(everything, pid) if each in found), None)
        if above is not None and found[above].role in ("engine", "engine_worker"):
            title = "detokenizer" in one.line
            found[pid] = Part("other" if title else "engine_worker", "an engine started it")


def is_training_script(one: Seen) -> bool:
    """Whether the name of its program is that of training: of Ray's driver, usually."""
    return _TRAINING_PROGRAM.search(one.program) is not None


def is_engine_program(one: Seen) -> bool:
    """Whether a command line starts a rollout engine, by its program alone."""
    name = one.program if one.is_python else _console_script(one)
    return ENGINE_PROGRAM.search(name) is not None
