"""Who holds the GIL and does not let go of it."""

from __future__ import annotations

import re

from watchdog.evidence import Process, StackSample, ThreadStack
from watchdog.waits.kernel import works
from watchdog.waits.samples import MIN_APART_S, comparable_pair
from watchdog.waits.stack import StackWait, stack_wait

SILENT_HEARTBEAT_S = 3.0
"""A heartbeat older than this, while the process runs, means that no Python thread got the GIL."""

_BLOCKED_IN_C = re.compile(
    r"__lll_lock_wait|pthread_mutex_lock|futex|pthread_cond|cu(da)?(Stream|Event|Ctx|Device)\w*"
    r"|cudaSetDevice|cuCtxSetCurrent|nanosleep|__poll|epoll_wait|__read|recv|sem_wait|pause"
)
_BLIND = ("gdb", "faulthandler")
"""Tools that cannot tell who holds the GIL."""

_WAITS_FOR_GIL = re.compile(r"take_gil|PyEval_RestoreThread|PyGILState_Ensure|PyEval_AcquireThread")


def holder(process: Process) -> StackWait | None:
    """The thread that keeps the GIL while it waits, or `None`.

    Either its native frames show that it waits inside C, or two samples show it at the same
    place with the GIL, or the black box's heartbeat stands still meanwhile. A thread that merely
    runs Python code holds the GIL as well: that is work. So is a long call into C of the only
    thread there is, as long as it uses a CPU: it keeps the GIL from nobody.
    """
    stacks = tuple(s for s in process.stacks if not s.source.startswith(_BLIND))
    thread = _owner(stacks[-1]) if stacks else None
    if thread is None:
        return None
    native = next((t for s in stacks[-2:] if (t := _owner(s)) and _is_blocked_in_c(t)), None)
    if native is not None:
        return stack_wait(native)
    if _starves_others(stacks[-1], thread):
        return stack_wait(thread)
    if _heartbeat_is_silent(process):
        return stack_wait(thread)
    if _stood_still(comparable_pair(process, apart_s=MIN_APART_S), thread) and not _works_alone(
        process, thread
    ):
        return stack_wait(thread)
    return None


def _owner(sample: StackSample) -> ThreadStack | None:
    return next((t for t in sample.threads if t.owns_gil and t.frames), None)


def _is_blocked_in_c(thread: ThreadStack) -> bool:
    return any(f.native and _BLOCKED_IN_C.search(f.function) for f in thread.frames[:3])


def _starves_others(sample: StackSample, owner: ThreadStack) -> bool:
    # A thread without Python frames never asks for it, unless it is seen to.
    others = [t for t in sample.threads if t is not owner and t.frames and _may_want(t)]
    waiting = [t for t in others if any(_WAITS_FOR_GIL.search(f.function) for f in t.frames[:4])]
    return len(waiting) >= 2 and len(waiting) == len(others)


def _may_want(thread: ThreadStack) -> bool:
    return any(not f.native or _WAITS_FOR_GIL.search(f.function) for f in thread.frames)


def _stood_still(pair: tuple[StackSample, StackSample] | None, thread: ThreadStack) -> bool:
    before = _owner(pair[0]) if pair is not None else None
    return before is not None and _lines(before) == _lines(thread)


def _works_alone(process: Process, thread: ThreadStack) -> bool:
    others = [t for t in process.stacks[-1].threads if t is not thread and t.frames]
    if others or len(process.activity) < 2:
        return False
    before, after = process.activity[-2:]
    if None in (before.cpu_s, after.cpu_s, before.taken_at_s, after.taken_at_s):
        return False
    worked_s = (after.cpu_s or 0.0) - (before.cpu_s or 0.0)
    seconds = (after.taken_at_s or 0.0) - (before.taken_at_s or 0.0)
    return seconds > 0 and works(process, worked_s / seconds)


def _lines(thread: ThreadStack) -> list[tuple[str, str, int]]:
    return [(f.function, f.file, f.line) for f in thread.frames if not f.native]


def _heartbeat_is_silent(process: Process) -> bool:
    age = process.position.heartbeat_age_s if process.position is not None else None
    return age is not None and age > SILENT_HEARTBEAT_S
