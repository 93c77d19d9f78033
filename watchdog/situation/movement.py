"""Whether a process moves: two samples, the black box's ring, the counters of its log."""

from __future__ import annotations

import re
from dataclasses import dataclass

from watchdog.evidence import ActivitySample, Mark, Process, StackSample
from watchdog.waits import StackWait
from watchdog.waits.kernel import works
from watchdog.waits.patterns import WaitKind
from watchdog.waits.samples import MIN_APART_S, comparable_pair, has_python, is_cut
from watchdog.waits.stack import decisive_wait

MIN_IO_BYTES_PER_S = 256 * 1024
"""Less input and output than this is the noise of logging and heartbeats."""

MIN_RUN_S = 0.00005
"""CPU time of a thread that went on with a transfer. One that sleeps on uses none at all; a signal
that it does not even notice costs less than this."""

_TRANSFERS = re.compile(
    r"_*(send|sendall|sendmsg|sendto|write|writev|recv|recvmsg|recvfrom)(_nocancel)?"
)

# Where the kernel has a thread sleep until the other end of a socket or pipe reads or writes.
_TRANSFER_CHANNELS = re.compile(
    r"sock_alloc_send|sk_stream_wait_memory|unix_stream_|sk_wait_data|wait_for_space|pipe_write"
    r"|pipe_read|wait_woken"
)

_POLLING: frozenset[WaitKind] = frozenset(
    {"file_wait", "prompt", "lock", "rpc", "sleep", "queue", "idle", "await", "store"}
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
    ran = _by_main_thread(process, kind)
    if ran.moving:
        return ran
    stacks = _by_stacks(process, kind, counters)
    if stacks.moving is not None:
        return stacks
    return marks if marks.moving is not None else counters


def _by_counters(process: Process, kind: WaitKind) -> Movement:
    if len(process.activity) < 2:
        return Movement(None)
    before, after = _two_looks(process)
    if before.taken_at_s is None or after.taken_at_s is None:
        return _by_counters_without_time(before, after, kind)
    seconds = after.taken_at_s - before.taken_at_s
    if seconds <= 0:
        return Movement(None)
    for name, old, new in _bytes(before, after):
        rate = (new - old) / seconds
        if rate >= _least_rate(kind) and kind not in _POLLING:
            return Movement(True, f"{name} {rate / 1e6:.1f} MB/s", seconds)
    share = _cpu_share(process, seconds)
    if share is not None and kind in _WORKING and works(process, share):
        return Movement(True, f"uses {share:.0%} of a CPU", seconds)
    return Movement(False, "no input or output", seconds)


def _two_looks(process: Process) -> tuple[ActivitySample, ActivitySample]:
    """The last of two looks or more, and the newest before it that lies far enough back."""
    *earlier, after = process.activity
    apart = [one for one in earlier if _seconds(one, after) >= MIN_APART_S]
    return (apart or earlier)[-1], after


def _seconds(before: ActivitySample, after: ActivitySample) -> float:
    if before.taken_at_s is None or after.taken_at_s is None:
        return 0.0
    return after.taken_at_s - before.taken_at_s


def _by_main_thread(process: Process, kind: WaitKind) -> Movement:
    """A thread that sends or reads at one place, and ran in between: the other side takes it.

    Only where the innermost call, or the kernel function that it sleeps in, is one of input or
    output: elsewhere running proves nothing.
    """
    if kind not in ("unknown", "file_io") or len(process.activity) < 2 or not process.stacks:
        return Movement(None)
    main = next((t for t in process.stacks[-1].threads if t.frames), None)
    before, after = (
        next((t for t in sample.threads if t.tid == process.pid), None)
        for sample in _two_looks(process)
    )
    if main is None or before is None or after is None:
        return Movement(None)
    call = main.frames[0].function
    is_transfer = _TRANSFERS.fullmatch(call) or _TRANSFER_CHANNELS.search(after.wchan)
    if not is_transfer or before.cpu_s is None or after.cpu_s is None:
        return Movement(None)
    ran_s = after.cpu_s - before.cpu_s
    if ran_s < MIN_RUN_S:
        return Movement(None)
    return Movement(True, f"{call} goes on: its thread ran {ran_s * 1000:.1f} ms")


def _least_rate(kind: WaitKind) -> float:
    """A rank in a collective reads and writes a little all the time; its peers see more."""
    return MIN_IO_BYTES_PER_S * (20 if kind in ("collective", "rendezvous") else 1)


def _by_counters_without_time(
    before: ActivitySample, after: ActivitySample, kind: WaitKind
) -> Movement:
    for name, old, new in _bytes(before, after):
        if new - old >= 16 * MIN_IO_BYTES_PER_S and kind not in _POLLING:
            return Movement(True, f"{name} {(new - old) / 1e6:.0f} MB more")
    worked_s = (after.cpu_s or 0) - (before.cpu_s or after.cpu_s or 0)
    if kind in ("slow_work", "compute") and worked_s > 5:
        return Movement(True, f"{worked_s:.0f} s more CPU time")
    return Movement(None)


def _bytes(before: ActivitySample, after: ActivitySample) -> list[tuple[str, int, int]]:
    pairs = (
        ("reads", before.read_bytes, after.read_bytes),
        ("writes", before.write_bytes, after.write_bytes),
    )
    return [(name, old, new) for name, old, new in pairs if old is not None and new is not None]


def _cpu_share(process: Process, seconds: float) -> float | None:
    """CPU time a second of the thread that stands for the process, else of the whole process.

    The watchdog's own threads work while they look; they must not count.
    """
    told = decisive_wait(process.stacks[-1]) if process.stacks else None
    tid = (told.thread.os_thread_id if told is not None else None) or process.pid
    samples = _two_looks(process)
    times = [next((t.cpu_s for t in s.threads if t.tid == tid), None) for s in samples]
    if None in times:
        times = [sample.cpu_s for sample in samples]
    before, after = times
    return (after - before) / seconds if before is not None and after is not None else None


def _by_marks(process: Process) -> Movement:
    """Fresh marks in the ring: at least three in the younger half of the section."""
    position = process.position
    if position is None or not position.section or not position.section_age_s:
        return Movement(None)
    age = position.section_age_s
    marks = [m for m in position.history if m.kind in ("phase", "collective")]
    num_young = sum(_num_younger(mark, age / 2) for mark in marks)
    if num_young >= 3 and min(_last_age_s(mark) for mark in marks) < age / 4:
        return Movement(True, f"{num_young} marks in the last {age / 2:.1f} s", age / 2)
    return Movement(False if position.history else None, "no new mark in the black box")


def _last_age_s(mark: Mark) -> float:
    return mark.age_s if mark.last_age_s is None else mark.last_age_s


def _num_younger(mark: Mark, age_s: float) -> int:
    """How often it was written since, taking repeated ones as evenly spread."""
    last_age_s = _last_age_s(mark)
    if last_age_s >= age_s:
        return 0
    share = min(1.0, (age_s - last_age_s) / max(mark.age_s - last_age_s, 1e-9))
    return max(1, int(share * mark.num_marks))


def _by_stacks(process: Process, kind: WaitKind, counters: Movement) -> Movement:
    pair = comparable_pair(process, apart_s=MIN_APART_S)
    if pair is None or not (has_python(pair[0]) and has_python(pair[1])):
        return Movement(None)
    if is_cut(pair[1], pair[0]) or is_cut(pair[0], pair[1]):
        return Movement(None, "one of the samples is cut")
    before, after = decisive_wait(pair[0]), decisive_wait(pair[1])
    seconds = _between(pair)
    if before is None or after is None:
        return Movement(None)
    same_names = _names(before) == _names(after)
    if before.kind in _POLLING and before.kind == after.kind and same_names:
        return Movement(False, f"same {after.operation} in both samples", seconds)
    if _polls(process, pair, (before, after)):
        return Movement(False, f"polls in {_top(min(before, after, key=_depth))}", seconds)
    if not same_names:
        then, now = _top(before), _top(after)
        if then == now:
            then, now = (wait.thread.frames[0].function for wait in (before, after))
        return Movement(True, f"{then} then, {now} now", seconds)
    if _lines(before) == _lines(after):
        return Movement(False, f"same frames in both samples ({_top(after)})", seconds)
    if kind in _WORKING and (counters.how.startswith("uses") or after.thread.active):
        return Movement(True, f"other lines of {_top(after)}", seconds)
    return Movement(False, f"same functions in both samples ({_top(after)})", seconds)


def _polls(
    process: Process, pair: tuple[StackSample, StackSample], waits: tuple[StackWait, StackWait]
) -> bool:
    """Whether it slept in one sample and asked in the other, from within the same function."""
    few, many = sorted((tuple(reversed(_names(wait))) for wait in waits), key=len)
    if not few or many[: len(few)] != few:
        return False
    sleeping = [_sleeps(process, *one) for one in zip(pair, waits, strict=True)]
    return any(
        asleep and other.kind in _POLLING
        for asleep, other in zip(sleeping, reversed(waits), strict=True)
    )


def _sleeps(process: Process, sample: StackSample, wait: StackWait) -> bool:
    """Whether it slept for a while that it had chosen; Python's stack alone does not show it."""
    if wait.kind != "unknown":
        return wait.kind == "sleep"
    at_s = sample.taken_at_s
    times = [a for a in process.activity if a.taken_at_s is not None and at_s is not None]
    if at_s is None or not times:
        return False
    nearest = min(times, key=lambda one: abs((one.taken_at_s or 0.0) - at_s))
    return any(t.tid == process.pid and "nanosleep" in t.wchan for t in nearest.threads)


def _depth(wait: StackWait) -> int:
    return len(_names(wait))


def _between(pair: tuple[StackSample, StackSample]) -> float | None:
    before, after = pair[0].taken_at_s, pair[1].taken_at_s
    return after - before if before is not None and after is not None else None


def _names(wait: StackWait) -> tuple[str, ...]:
    return tuple(f.function for f in wait.thread.frames if not f.native)


def _lines(wait: StackWait) -> tuple[tuple[str, int], ...]:
    return tuple((f.function, f.line) for f in wait.thread.frames if not f.native)


def _top(wait: StackWait) -> str:
    return wait.path[0].function if wait.path else wait.operation
