"""One process: everything that is known of it, made into one wait."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from watchdog.evidence import NO_ANSWER, Collective, Frame, Process, ThreadActivity
from watchdog.waits import gil, kernel
from watchdog.waits.patterns import WaitKind, own_frames, package_path
from watchdog.waits.samples import WEAK, telling_sample
from watchdog.waits.stack import StackWait, decisive_wait

SETUP_OPS = frozenset({"new_group", "init_process_group", "new_subgroups", "split_group"})
"""Operations of a black box that build a group."""

_EQUAL_INPUT_OPS = frozenset(
    {
        "broadcast",
        "allreduce",
        "reduce",
        "allgatherintotensor",
        "allgatherbase",
        "reducescattertensor",
        "reducescatterbase",
    }
)

_PHASES: tuple[tuple[str, WaitKind], ...] = (
    (r"^read|weights?_getter", "weight_read"),
    (r"barrier", "collective"),
    (r"connect|rendezvous|reload.*group|init.*group", "rendezvous"),
    (r"pause|flush|resume|continue|send|rpc|update_weights_from", "rpc"),
    (r"sleep|offload|wake", "memory_switch"),
)
_MAX_CALLERS = 3
_SAYS_MUCH = re.compile(
    r"weight|sync|refit|engine|broadcast|barrier|gather|send|recv|pause|resume|sleep|wake|flush"
    r"|save|checkpoint|generate|connect|backup|lora|offload|onload|export|train_step|backward"
)
_SAYS_LITTLE = re.compile(r"_*(main|run|start|call|step|fit|wrapper|wrapped|inner|decorate\w*)_*")
# A checkout has no folder that tells where the package begins, other than the package's own.
_CHECKOUT = re.compile(
    r"^.*/((?:miles|slime|verl|skyrl\w*|nemo_rl|openrlhf|trl|areal|prime_rl|sglang|vllm|megatron"
    r"|torch_memory_saver)/[^/].*)$"
)


@dataclass(frozen=True)
class Wait:
    """What a process is doing.

    Attributes:
        kind: See `WaitKind`.
        operation: The call: `barrier`, `ray.get`, `_compute_hash_tensor` …
        where: For people: `phase, function (file:line) < caller < caller`.
        thread: Name of the thread that stands for the process, "" where none is known.
        site: Innermost own function with file and line: two ranks at the same place share it.
        peer: Whom it waits for, as far as the process itself tells: a function name of the other
            side, a path, "" otherwise.
        group: Process group of a collective, "" for the default or an unknown one.
        group_ranks: Its ranks, ascending; empty where unknown.
        sequence: Number of the collective in the group, `None` where unknown.
        num_bytes: This rank's input of a collective whose ranks must agree on it (bytes), `None`
            where unknown or where ranks may differ.
        waited_s: How long already (s), `None` where unknown.
        frames: The telling frames, innermost first.
        path: The own frames, innermost first.
        holds_gil: Whether its waiting thread holds the GIL.
        note: What else is to be known.
    """

    kind: WaitKind
    operation: str = ""
    where: str = ""
    thread: str = ""
    site: str = ""
    peer: str = ""
    group: str = ""
    group_ranks: tuple[int, ...] = ()
    sequence: int | None = None
    num_bytes: int | None = None
    waited_s: float | None = None
    frames: tuple[Frame, ...] = ()
    path: tuple[Frame, ...] = field(default=())
    holds_gil: bool = False
    note: str = ""

    def passes(self, expression: str) -> bool:
        """Whether a telling or own frame (function or file) or the operation matches."""
        wanted = re.compile(expression)
        names = (
            self.operation,
            *(n for f in (*self.frames, *self.path) for n in (f.function, f.file)),
        )
        return any(wanted.search(name) for name in names)


def wait_of(process: Process) -> Wait:
    """What the process is doing, by the strongest source there is.

    Status and kernel first (dead, stopped, blocked in a page fault), then the GIL, then the
    stack, completed by the black box; the black box alone where there is no stack.
    """
    stack = telling_sample(process)
    told = decisive_wait(stack) if stack is not None else None
    wait = _from_stack(told) if told is not None else Wait("unknown")
    wait = _with_black_box(wait, process)
    wait = _with_kernel(wait, process, told)
    holder = gil.holder(process)
    if holder is not None and wait.kind != "paused_memory":
        wait = _from_holder(wait, holder)
    return _with_place(replace(wait, holds_gil=holder is not None or wait.holds_gil), process)


def _from_stack(told: StackWait) -> Wait:
    return Wait(
        told.kind,
        told.operation,
        thread=told.thread.name,
        site=_place(told.path[0]) if told.path else (_place(told.frames[0]) if told.frames else ""),
        peer=told.path[0].function if told.path and told.kind in ("rpc", "file_wait") else "",
        frames=told.frames,
        path=told.path,
        note=told.note,
    )


def needs_equal_input(op: str) -> bool:
    """Whether every rank must bring as much as the others to it, whoever wrote its name."""
    return op.replace("_", "").lower() in _EQUAL_INPUT_OPS


def open_collective(process: Process) -> Collective | None:
    """The collective that the black box or a flight recorder shows as not finished."""
    if process.position is not None and process.position.collective is not None:
        collective = process.position.collective
        if not collective.finished:
            return collective
    return next((c for c in reversed(process.collectives) if not c.finished), None)


def _with_black_box(wait: Wait, process: Process) -> Wait:
    collective = open_collective(process)
    if collective is not None:
        setup = collective.op in SETUP_OPS
        if wait.kind in WEAK or wait.kind in ("collective", "rendezvous"):
            told = collective.num_bytes if needs_equal_input(collective.op) else None
            return replace(
                wait,
                kind="rendezvous" if setup else "collective",
                operation=collective.op,
                group=collective.group,
                group_ranks=collective.group_ranks,
                sequence=collective.sequence,
                num_bytes=told or None,
                waited_s=collective.waited_s,
                site=wait.site or collective.call_site,
            )
    position = process.position
    if position is None:
        return wait
    wait = replace(wait, waited_s=position.phase_age_s or position.section_age_s)
    if not wait.frames and position.phase:
        kind = next((k for p, k in _PHASES if re.search(p, position.phase)), wait.kind)
        if kind != "collective" or position.collective is None:
            wait = replace(wait, kind=kind, operation=wait.operation or position.phase)
    return wait


def _with_kernel(wait: Wait, process: Process, told: StackWait | None) -> Wait:
    if kernel.is_dead(process):
        return replace(wait, kind="dead", operation=process.status_detail or process.status)
    if kernel.is_stopped(process):
        return replace(wait, kind="stopped", operation=process.status_detail or "stopped")
    if is_unheard(process):
        # Its position is what it last said: it may have gone on since, or be no more.
        return replace(wait, kind="no_answer", operation=process.status_detail)
    fault = kernel.thread_in(process, kernel.USERFAULT_CHANNELS)
    if fault is None and _memory_is_paused(process, wait):
        fault = kernel.thread_in(process, kernel.SIGNAL_PAUSE_CHANNELS)
    if fault is not None:
        operation = wait.operation if wait.kind == "weight_read" else "read of paused memory"
        return replace(wait, kind="paused_memory", operation=operation, note=f"wchan {fault.wchan}")
    thread = kernel.main_thread(process)
    if thread is not None and wait.kind == "weight_read" and wait.thread in ("", "MainThread"):
        wait = _without_claim(wait, thread.wchan)
    if thread is not None and wait.kind in (*WEAK, "file_io") and _is_in_file(wait, thread):
        return replace(
            wait,
            kind="file_io",
            operation=wait.operation or "file input/output",
            note=f"wchan {thread.wchan}",
        )
    if wait.kind == "unknown" and kernel.only_thread_waits_for_lock(process):
        return replace(wait, kind="lock", operation="lock", note="wchan futex, no other thread")
    if told is None and open_collective(process) is None and _is_silent(process):
        return replace(wait, kind="no_answer", operation=process.status_detail or "no answer")
    return wait


def _is_in_file(wait: Wait, thread: ThreadActivity) -> bool:
    if kernel.waits_for_file(thread):
        return True
    return kernel.waits_for_inode(thread) and wait.passes(r"save|load|open|read|write|checkpoint")


def is_unheard(process: Process) -> bool:
    """Whether neither it nor anything else of its host could be asked about it."""
    return process.status_detail.startswith(NO_ANSWER) and not process.stacks


def _without_claim(wait: Wait, channel: str) -> Wait:
    """The wait, not as a weight read where the kernel says that nothing is read."""
    if channel in kernel.SLEEP_CHANNELS:
        return replace(wait, kind="sleep", operation="sleep", note=f"wchan {channel}")
    if channel in kernel.SOCKET_CHANNELS:
        return replace(wait, kind="rpc", operation="socket", note=f"wchan {channel}")
    return wait


def _memory_is_paused(process: Process, wait: Wait) -> bool:
    """Whether a `pause()` can be the handler of a fault: by the ledger, or by the frames."""
    if any(region.residency != "resident" for region in process.memory):
        return True
    return wait.kind == "weight_read" and bool(wait.frames)


def _is_silent(process: Process) -> bool:
    """Nothing at all came from it: no stack, no black box."""
    return not process.stacks and process.position is None


def _from_holder(wait: Wait, holder: StackWait) -> Wait:
    if wait.kind in ("dead", "stopped", "weight_read") or holder.kind == "collective":
        return wait
    return replace(
        wait,
        kind="gil_held",
        operation=holder.frames[0].function if holder.frames else holder.operation,
        thread=holder.thread.name,
        site=_place(holder.path[0]) if holder.path else wait.site,
        frames=holder.thread.frames[:8],
        path=own_frames(holder.thread.frames),
    )


def _place(frame: Frame) -> str:
    where = f"{_short(frame.file)}:{frame.line}" if frame.line else _short(frame.file)
    return f"{frame.function} ({where})" if where else frame.function


def _short(path: str) -> str:
    """The package's path, or the last parts of one that is not installed, marked as such."""
    short = package_path(path)
    if short != path:
        return short
    if (checkout := _CHECKOUT.search(path)) is not None:
        return checkout.group(1)
    names = [name for name in path.split("/") if name]
    return f"…/{'/'.join(names[-4:])}" if len(names) > 4 else path


def _calls_that_tell(wait: Wait) -> list[str]:
    """The innermost call, the place of the first own one, and the callers that say most."""
    names: list[str] = []
    kept: set[int] = set()
    placed = False
    shown = (*wait.frames, *(f for f in wait.path if f not in wait.frames))
    for frame in [f for f in shown if not f.function.startswith("0x")] or shown:
        own = frame in wait.path
        if frame.function.startswith("<") and names and frame.function != "<module>":
            continue
        if own and not placed:
            kept.add(len(names))
        name = _place(frame) if own and not placed else frame.function
        placed = placed or own
        if not names or names[-1] != name:
            names.append(name)
    kept.add(0)
    callers = sorted(range(len(names)), key=lambda at: (_rank_of_caller(names[at]), at))
    kept.update([at for at in callers if at not in kept][: 1 + _MAX_CALLERS - len(kept)])
    return [name for at, name in enumerate(names) if at in kept]


def _rank_of_caller(name: str) -> int:
    if _SAYS_LITTLE.fullmatch(name):
        return 2
    return 0 if _SAYS_MUCH.search(name) else 1


def _with_place(wait: Wait, process: Process) -> Wait:
    where = " < ".join(_calls_that_tell(wait))
    phase = process.position.phase if process.position is not None else ""
    if wait.kind in ("dead", "stopped", "no_answer") and wait.operation:
        where = f"{wait.operation}, last seen in {where}" if where else wait.operation
    if wait.note:
        where = f"{where} [{wait.note}]" if where else wait.note
    return replace(wait, where=", ".join(part for part in (phase, where or wait.operation) if part))
