"""The stacks of this process, by Python itself: where nobody may look from outside."""

from __future__ import annotations

import sys
import threading
import time

from watchdog.evidence import Frame, StackSample, ThreadStack

_MAX_FRAMES = 200


def sample() -> StackSample:
    """Copy the stack of every thread.

    Needs the GIL: where a thread hangs in C code that never lets go of it, this does not run.
    Reads no local variable and no source file.

    Source:
        CPython library reference, `sys._current_frames`: a snapshot, stale as soon as it is taken.
    """
    # `threading.enumerate()` takes a lock that a thread under start may hold; the dict itself can
    # be copied in one step.
    known = dict(threading._active)  # type: ignore[attr-defined]
    main = threading.main_thread().ident
    threads = []
    for ident, frame in sys._current_frames().items():
        thread = known.get(ident)
        name = thread.name if thread is not None else ""
        tid = thread.native_id if thread is not None else None
        threads.append((ident != main, ThreadStack(name, _frames(frame), os_thread_id=tid)))
    threads.sort(key=lambda entry: entry[0])
    return StackSample(tuple(thread for _, thread in threads), "in-process", taken_at_s=time.time())


def _frames(frame: object) -> tuple[Frame, ...]:
    frames: list[Frame] = []
    while frame is not None and len(frames) < _MAX_FRAMES:
        code = frame.f_code  # type: ignore[attr-defined]
        line = frame.f_lineno or 0  # type: ignore[attr-defined]
        frames.append(Frame(code.co_name, code.co_filename, line))
        frame = frame.f_back  # type: ignore[attr-defined]
    return tuple(frames)
