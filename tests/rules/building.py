"""Short hand for evidence in tests: stacks as text, processes by rank."""

from __future__ import annotations

import re

from watchdog.evidence import (
    ActivitySample,
    Collective,
    Evidence,
    Flag,
    Frame,
    LogEvent,
    Mark,
    Position,
    Process,
    StackSample,
    ThreadActivity,
    ThreadStack,
)

_FRAME = re.compile(r"^(.+?) \(([^()]+?)(?::(\d+))?\)$")

GLOO_BARRIER = """
barrier (torch/distributed/distributed_c10d.py:4818)
wrapper (torch/distributed/c10d_logger.py:81)
new_function (miles/utils/reloadable_process_group.py:54)
update_weights (miles/backends/megatron_utils/update_weight/update_weight_from_tensor.py:314)
update_weights (miles/backends/megatron_utils/actor.py:747)
"""


def frames(text: str) -> tuple[Frame, ...]:
    """Frames from lines `function (file:line)`, innermost first; `.so` files are native."""
    found = []
    for line in filter(None, map(str.strip, text.strip().splitlines())):
        match = _FRAME.match(line)
        assert match, line
        file = match[2]
        native = ".so" in file or file.startswith("python3")
        found.append(Frame(match[1], file, int(match[3] or 0), native=native))
    return tuple(found)


def thread(text: str, name: str = "MainThread", **more: object) -> ThreadStack:
    """A thread from the lines of its stack."""
    return ThreadStack(name, frames(text), **more)  # type: ignore[arg-type]


def sample(
    *texts: str, at: float | None = None, source: str = "py-spy", **more: object
) -> StackSample:
    """A sample: the main thread's lines, then those of other threads."""
    names = ["MainThread", *(f"Thread-{i}" for i in range(1, len(texts)))]
    threads = tuple(thread(text, name, **more) for text, name in zip(texts, names, strict=True))
    return StackSample(threads, source, at)


def rank(number: int, *stacks: str | StackSample, **more: object) -> Process:
    """A trainer with one sample a stack."""
    samples = tuple(sample(s) if isinstance(s, str) else s for s in stacks)
    pid = more.pop("pid", 1000 + number)
    return Process(f"rank {number}", "trainer", rank=number, pid=pid, stacks=samples, **more)  # type: ignore[arg-type]


def engine(
    index: int, *stacks: str | StackSample, worker: int | None = None, **more: object
) -> Process:
    """An engine, or one of its workers."""
    samples = tuple(sample(s) if isinstance(s, str) else s for s in stacks)
    key = f"engine {index}" if worker is None else f"engine {index} worker {worker}"
    pid = more.pop("pid", 2000 + 10 * index + (worker or 0) + (worker is not None))
    role = "engine" if worker is None else "engine_worker"
    return Process(key, role, engine=index, worker=worker, pid=pid, stacks=samples, **more)  # type: ignore[arg-type]


def blocked(pid: int, wchan: str, state: str = "S") -> ActivitySample:
    """What the kernel shows of a main thread that sleeps in this channel."""
    return ActivitySample(threads=(ThreadActivity(pid, "python", state, wchan),))


def position(
    phase: str = "",
    op: str = "",
    group: str = "",
    sequence: int | None = None,
    ranks: tuple[int, ...] = (),
    age: float = 8.0,
    finished: bool = False,
    index: int = 1,
    heartbeat: float = 0.2,
    marks: tuple[Mark, ...] = (),
    call_site: str = "",
) -> Position:
    """A black box in the weight sync."""
    collective = (
        Collective(op, group, ranks, sequence, call_site=call_site, finished=finished, waited_s=age)
        if op
        else None
    )
    return Position("weight_sync", index, age + 1, phase, age, collective, heartbeat, marks)


def log(
    text: str, file: str = "trainer.log", line: int = 1, kind: str = "line", **more: object
) -> LogEvent:
    """A line of a log."""
    return LogEvent(kind, text, file, line, **more)  # type: ignore[arg-type]


def flags(**values: str | int | float | bool | None) -> tuple[Flag, ...]:
    """Flags by name."""
    return tuple(Flag(name, value) for name, value in values.items())


def files(*processes: Process, **more: object) -> Evidence:
    """Evidence from files."""
    return Evidence("files", processes, **more)  # type: ignore[arg-type]


def live(*processes: Process, **more: object) -> Evidence:
    """Evidence of the watchdog, five seconds after the stall began."""
    from watchdog.evidence import Stall

    more.setdefault("world_size", len([p for p in processes if p.role == "trainer"]))
    more.setdefault("stall", Stall("weight_sync", 8.0, 5.0))
    return Evidence("watchdog", processes, **more)  # type: ignore[arg-type]
