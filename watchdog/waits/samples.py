"""Which of several stack samples of a process to believe, and which two may be compared.

py-spy, pystack, gdb and faulthandler print the same stack differently: names with or without
their class, native frames only, other threads. Two samples show movement only where the same
tool took both.
"""

from __future__ import annotations

from watchdog.evidence import Process, StackSample
from watchdog.waits.patterns import WaitKind
from watchdog.waits.stack import decisive_wait

WEAK: frozenset[WaitKind] = frozenset(
    {
        "unknown",
        "device_sync",
        "sleep",
        "queue",
        "await",
        "idle",
        "cleanup",
        "compute",
        "lock",
        "store",
    }
)
"""Kinds of wait that another source may make more precise."""


def usable_samples(process: Process) -> tuple[StackSample, ...]:
    """The samples with any frame, oldest first."""
    return tuple(s for s in process.stacks if any(t.frames for t in s.threads))


MIN_APART_S = 1.0
"""What stands still for less proves nothing: a suspect's native frames are read a moment after
its second sample."""


def comparable_pair(
    process: Process, *, apart_s: float = 0.0
) -> tuple[StackSample, StackSample] | None:
    """The newest sample that another one of the same tool precedes, and that one, older first.

    Args:
        process: The process.
        apart_s: Of those that precede it, the newest that is older by so much is taken (s); the
            newest of all where none is.
    """
    usable = usable_samples(process)
    for index in range(len(usable) - 1, 0, -1):
        after = usable[index]
        before = [one for one in usable[:index] if _tool(one) == _tool(after)]
        if before:
            apart = [one for one in before if _is_older(one, after, apart_s)]
            return (apart or before)[-1], after
    return None


def _is_older(before: StackSample, after: StackSample, by_s: float) -> bool:
    if before.taken_at_s is None or after.taken_at_s is None:
        return True
    return after.taken_at_s - before.taken_at_s >= by_s


def telling_sample(process: Process) -> StackSample | None:
    """The newest sample; the one before if that shows the same calls and more of them.

    A dump that was cut, and one without native frames, say less than their predecessor. A dump of
    native frames alone counts only where the Python frames of another tool do not tell.
    """
    usable = usable_samples(process)
    if not usable:
        return None
    pair = comparable_pair(process)
    newest = usable[-1]
    if pair is not None and pair[1] is newest:
        newest = _fuller(*pair)
    if has_python(newest):
        return _native_where_python_is_mute(usable, newest)
    python = next((s for s in reversed(usable) if has_python(s)), None)
    return python if python is not None and not _tells_more(newest, python) else newest


def _native_where_python_is_mute(
    usable: tuple[StackSample, ...], python: StackSample
) -> StackSample:
    """Another tool's native frames where no Python frame tells anything, else the Python ones."""
    told = decisive_wait(python)
    native = next((s for s in reversed(usable) if not has_python(s)), None)
    if native is None or told is None or told.kind != "unknown":
        return python
    return native if _tells_more(native, python) else python


def _fuller(before: StackSample, after: StackSample) -> StackSample:
    if is_cut(after, before):
        return before
    lacks_native = not _is_native(after) and _is_native(before)
    return before if lacks_native and _python_calls(after) == _python_calls(before) else after


def _tells_more(native: StackSample, python: StackSample) -> bool:
    one, other = decisive_wait(native), decisive_wait(python)
    if one is None or other is None:
        return other is None
    if other.kind == "unknown":
        return one.kind != "unknown"
    return other.kind in WEAK and one.kind not in WEAK


def has_python(sample: StackSample) -> bool:
    """Whether any frame is one of Python code."""
    return any(not frame.native for thread in sample.threads for frame in thread.frames)


def is_cut(sample: StackSample, whole: StackSample) -> bool:
    """Whether the main thread of a sample is the beginning of that of the other."""
    few, many = _calls(sample), _calls(whole)
    return len(few) < len(many) and many[: len(few)] == few


def _tool(sample: StackSample) -> str:
    """`py-spy` for `py-spy --native` as well: its Python frames are the same."""
    return sample.source.split(" ", 1)[0]


def _calls(sample: StackSample) -> list[tuple[str, int]]:
    main = next((t for t in sample.threads if t.frames), None)
    return [(f.function, f.line) for f in main.frames if "0x" not in f.function] if main else []


def _is_native(sample: StackSample) -> bool:
    return any(frame.native for thread in sample.threads for frame in thread.frames)


def _python_calls(sample: StackSample) -> list[tuple[str, int]]:
    main = next((t for t in sample.threads if t.frames), None)
    return [(f.function, f.line) for f in main.frames if not f.native] if main else []
