"""Whether a process moves: two samples, the black box's ring, the counters of its log."""

from __future__ import annotations

from dataclasses import dataclass

from watchdog.evidence import ActivitySample, Process, StackSample
from watchdog.waits import StackWait
from watchdog.waits.patterns import WaitKind
from watchdog.waits.process import is_cut
from watchdog.waits.stack import decisive_wait

MIN_IO_BYTES_PER_S = 256 * 1024
"""Less input and output than this is the noise of logging and heartbeats."""

MIN_CPU_SHARE = 0.2
"""CPU time a second below which a process is not working."""

_POLLING: frozenset[WaitKind] = frozenset(
    {"file_wait", "lock", "rpc", "sleep", "queue", "idle", "await", "store"}
)
_WORKING: frozenset[WaitKind] = frozenset(
    {"slow_work", "compute", "file_io", "unknown", "weight_read", "engine_step"}
)


@dataclass(frozen=True)
class Movement:
    """Whether something moved between two looks at a process.

    Attributes:
        moving: `None` where there was only one look.
        how: What changed, or what stood still, one phrase.
        between_s: Time between the looks (s), `None` where unknown.
    """

    moving: bool | None
    how: str = ""
    between_s: float | None = None


def movement(process: Process, kind: WaitKind) -> Movement:
    """Compare what there is, strongest sign first.

    A polling loop that alternates between two lines stands still; so does a process that burns
    CPU inside one collective. Counters of input and output, other functions, other collectives
    and fresh marks in the black box are progress.
    """
    if kind in ("dead", "stopped", "paused_memory", "no_answer"):
        return Movement(False, kind.replace("_", " "))
    counters = _by_counters(process, kind)
    if counters.moving:
        return counters
    marks = _by_marks(process)
    if marks.moving:
        return marks
    stacks = _by_stacks(process, kind, counters)
    if stacks.moving is not None:
        return stacks
    return marks if marks.moving is not None else counters


def _by_counters(process: Process, kind: WaitKind) -> Movement:
    if len(process.activity) < 2:
        return Movement(None)
    before, after = process.activity[-2], process.activity[-1]
    if before.taken_at_s is None or after.taken_at_s is None:
        return _by_counters_without_time(before, after, kind)
    seconds = after.taken_at_s - before.taken_at_s
    if seconds <= 0:
        return Movement(None)
    for name, old, new in _bytes(before, after):
        rate = (new - old) / seconds
        if rate >= _least_rate(kind) and kind not in _POLLING:
            return Movement(True, f"{name} {rate / 1e6:.1f} MB/s", seconds)
    share = _cpu_share(before, after, seconds)
    if share is not None and share >= MIN_CPU_SHARE and kind in ("slow_work", "compute"):
        return Movement(True, f"uses {share:.0%} of a CPU", seconds)
    return Movement(False, "no input or output", seconds)


def _least_rate(kind: WaitKind) -> float:
    """A rank in a collective reads and writes a little all the time; its peers see more."""
    return MIN_IO_BYTES_PER_S * (20 if kind in ("collective", "rendezvous") else 1)


def _by_counters_without_time(
    before: ActivitySample, after: ActivitySample, kind: WaitKind
) -> Movement:
    for name, old, new in _bytes(before, after):
        if new - old >= 16 * MIN_IO_BYTES_PER_S and kind not in _POLLING:
            return Movement(True, f"{name} {(new - old) / 1e6:.0f} MB more")
    if before.cpu_s is not None and after.cpu_s is not None and kind in ("slow_work", "compute"):
        if after.cpu_s - before.cpu_s > 5:
            return Movement(True, f"{after.cpu_s - before.cpu_s:.0f} s more CPU time")
    return Movement(None)


def _bytes(before: ActivitySample, after: ActivitySample) -> list[tuple[str, int, int]]:
    pairs = (
        ("reads", before.read_bytes, after.read_bytes),
        ("writes", before.write_bytes, after.write_bytes),
    )
    return [(name, old, new) for name, old, new in pairs if old is not None and new is not None]


def _cpu_share(before: ActivitySample, after: ActivitySample, seconds: float) -> float | None:
    if before.cpu_s is None or after.cpu_s is None:
        return None
    return (after.cpu_s - before.cpu_s) / seconds


def _by_marks(process: Process) -> Movement:
    """Fresh marks in the ring: at least three in the younger half of the section."""
    position = process.position
    if position is None or not position.section or not position.section_age_s:
        return Movement(None)
    age = position.section_age_s
    young = [m for m in position.history if m.kind in ("phase", "collective") and m.age_s < age / 2]
    if len(young) >= 3 and min(m.age_s for m in young) < age / 4:
        return Movement(True, f"{len(young)} marks in the last {age / 2:.1f} s", age / 2)
    return Movement(False if position.history else None, "no new mark in the black box")


def _by_stacks(process: Process, kind: WaitKind, counters: Movement) -> Movement:
    pair = _last_two(process)
    if pair is None:
        return Movement(None)
    if is_cut(pair[1], pair[0]) or is_cut(pair[0], pair[1]):
        return Movement(None, "one of the samples is cut")
    before, after = decisive_wait(pair[0]), decisive_wait(pair[1])
    seconds = _between(pair)
    if before is None or after is None:
        return Movement(None)
    if before.kind in _POLLING and after.kind in _POLLING and before.kind == after.kind:
        if _names(before) == _names(after):
            return Movement(False, f"same {after.operation} in both samples", seconds)
    if _names(before) != _names(after):
        return Movement(True, f"{_top(before)} then, {_top(after)} now", seconds)
    if _lines(before) == _lines(after):
        return Movement(False, f"same frames in both samples ({_top(after)})", seconds)
    if kind in _WORKING and (counters.how.startswith("uses") or after.thread.active):
        return Movement(True, f"other lines of {_top(after)}", seconds)
    return Movement(False, f"same functions in both samples ({_top(after)})", seconds)


def _last_two(process: Process) -> tuple[StackSample, StackSample] | None:
    usable = [s for s in process.stacks if any(t.frames for t in s.threads)]
    return (usable[-2], usable[-1]) if len(usable) >= 2 else None


def _between(pair: tuple[StackSample, StackSample]) -> float | None:
    before, after = pair[0].taken_at_s, pair[1].taken_at_s
    return after - before if before is not None and after is not None else None


def _names(wait: StackWait) -> tuple[str, ...]:
    return tuple(f.function for f in wait.thread.frames if not f.native)


def _lines(wait: StackWait) -> tuple[tuple[str, int], ...]:
    return tuple((f.function, f.line) for f in wait.thread.frames if not f.native)


def _top(wait: StackWait) -> str:
    return wait.path[0].function if wait.path else wait.operation
