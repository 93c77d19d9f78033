"""What one stack says: the innermost call that tells, and the path that led there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from watchdog.evidence import Frame, StackSample, ThreadStack
from watchdog.waits import collectives, processes, work
from watchdog.waits.patterns import (
    Pattern,
    WaitKind,
    first_match,
    is_library,
    own_frames,
    program_frames,
)

TELLING: tuple[Pattern, ...] = (
    *collectives.NATIVE_RENDEZVOUS,
    *collectives.NATIVE_COLLECTIVES,
    *collectives.RENDEZVOUS,
    *collectives.COLLECTIVES,
    *work.WEIGHTS,
    *processes.FILES,
    *processes.RPC,
    *processes.DATA,
    *processes.PROMPTS,
    *work.SLOW_WORK,
    *work.IDLE,
    *work.ENGINE,
    *work.COMPUTE,
    *work.CLEANUP,
)
"""Rows that say for whom or on what a stack waits; the innermost frame that matches decides."""

HINTING: tuple[Pattern, ...] = (
    *processes.LOCKS,
    *processes.NATIVE_LOCKS,
    *processes.QUEUES,
    *work.DEVICE,
    *work.SLEEP,
)
"""Rows that say only how it waits; they count where no telling frame is further out."""

OVERRULED: frozenset[WaitKind] = frozenset(
    {"compute", "engine_step", "cleanup", "idle", "slow_work"}
)
"""Kinds of telling frames that a lock further in outranks: who waits for a lock in the middle of
the work is not working."""

_HOW_NAMES_ARE_OVERRULED: frozenset[WaitKind] = frozenset({"lock", "sleep", "queue"})
"""What the innermost frames say outranks a read, which the name of a function further out claims:
who sleeps, or waits for a lock, an event or another thread there, reads nothing."""

SETTING_UP = "setting up its communicator"
"""What a collective does whose group has not met yet."""

_HOUSEKEEPING = ("weight-sync-watchdog", "QueueFeederThread", "pt_nccl", "pt_gloo", "MsgReader")


@dataclass(frozen=True)
class StackWait:
    """One thread's wait.

    Attributes:
        kind: See `WaitKind`.
        operation: The call: `barrier`, `ray.get`, `_compute_hash_tensor` …
        frames: The frames that told, innermost first; may be empty.
        path: The own (not library) frames from there outwards, innermost first.
        thread: The thread.
        note: What else is to be known, e.g. `SETTING_UP`.
    """

    kind: WaitKind
    operation: str
    frames: tuple[Frame, ...]
    path: tuple[Frame, ...]
    thread: ThreadStack
    note: str = ""


def stack_wait(thread: ThreadStack) -> StackWait:
    """Classify one thread by its frames alone."""
    frames = thread.frames
    hint: tuple[int, Pattern] | None = None
    for index, frame in enumerate(frames):
        outer = frames[index + 1 :]
        row = first_match(frame, outer, TELLING)
        if row is not None and row.kind == "idle" and _has_called(frames[:index]):
            continue
        if row is not None:
            if hint is not None and _overrules(hint[1].kind, row):
                break
            return _told(thread, index, row)
        weak = first_match(frame, outer, HINTING)
        if weak is not None and (hint is None or _says_what_for(weak, hint[1])):
            hint = (index, weak)
    if hint is not None:
        return _told(thread, *hint)
    own = own_frames(frames) or program_frames(frames)
    operation = (own or frames)[0].function if frames else ""
    return StackWait("unknown", operation, frames[:1], own, thread)


def _says_what_for(outer: Pattern, inner: Pattern) -> bool:
    """Whether the frame further out tells what the native lock further in is there for.

    Events, queues and threads of Python wait by a lock: nobody has forgotten to give that back.
    """
    return inner in processes.NATIVE_LOCKS and outer.kind == "queue"


def _overrules(hint: WaitKind, told: Pattern) -> bool:
    if told.kind == "weight_read" or (told.kind == "file_io" and not told.file):
        return hint in _HOW_NAMES_ARE_OVERRULED
    return hint == "lock" and told.kind in OVERRULED


def _has_called(inner: tuple[Frame, ...]) -> bool:
    """Whether an idle loop has called something that no table knows, or a task of its actor."""
    return bool(own_frames(inner)) or any(f.function == "actor_method_executor" for f in inner)


def _told(thread: ThreadStack, index: int, row: Pattern) -> StackWait:
    """Follow the run of frames of one kind outwards: the outermost names a collective."""
    frames, kind, note = thread.frames, row.kind, ""
    run = [frames[index]]
    operation = row.operation or frames[index].function
    for offset in range(index + 1, len(frames)):
        frame = frames[offset]
        next_row = first_match(frame, frames[offset + 1 :], TELLING)
        if next_row is None:
            if is_library(frame):
                continue
            break
        if kind == "rendezvous" and next_row.kind == "collective":
            kind, note = "collective", SETTING_UP
        elif next_row.kind != kind:
            break
        run.append(frame)
        if kind in ("collective", "rendezvous"):
            operation = next_row.operation or frame.function
    if kind == "collective" and any(f.function == "recv_requests" for f in frames):
        kind, operation = "idle", "request queue"  # workers above 0 hear of requests by broadcast
    outer = frames[index:]
    path = own_frames(outer) or program_frames(outer)
    return StackWait(kind, operation, tuple(run), path, thread, note)


def thread_waits(sample: StackSample) -> tuple[StackWait, ...]:
    """The waits of all threads that matter, in the order of the sample."""
    return tuple(stack_wait(thread) for thread in sample.threads if not _is_housekeeping(thread))


def _is_housekeeping(thread: ThreadStack) -> bool:
    if thread.name.startswith(_HOUSEKEEPING):
        return True
    return any(
        f.function in ("_read_thread", "_recv_msg") or "tqdm/_monitor" in f.file
        for f in thread.frames
    )


_DELEGATING: frozenset[WaitKind] = frozenset({"await", "idle", "queue", "unknown", "sleep"})
_DECISIVE: tuple[WaitKind, ...] = (
    "weight_read",
    "collective",
    "rendezvous",
    "store",
    "lock",
    "rpc",
    "file_wait",
    "memory_switch",
    "engine_step",
    "file_io",
    "slow_work",
)


def decisive_wait(sample: StackSample) -> StackWait | None:
    """The wait of the thread that stands for the process, `None` without any stack.

    The main thread, unless it only waits for others: then the thread that does the work.
    """
    waits = [wait for wait in thread_waits(sample) if wait.thread.frames]
    if not waits:
        return None
    main = next((w for w in waits if w.thread.name == "MainThread"), waits[0])
    if main.kind not in _DELEGATING:
        return main
    for kind in _DECISIVE:
        for wait in waits:
            if wait is not main and wait.kind == kind and _does_work(wait):
                return _waited_for(wait, main)
    if main.kind in ("idle", "await"):
        handler = next((w for w in waits if w is not main and w.kind != "idle" and w.path), None)
        return handler or main
    return main


def _waited_for(wait: StackWait, main: StackWait) -> StackWait:
    """The wait of a helper thread, with the place at which the main thread waits for it."""
    if main.kind != "queue" or not main.path or wait.note:
        return wait
    return replace(wait, note=f"{main.path[0].function} of the main thread waits for it")


def _does_work(wait: StackWait) -> bool:
    """A library's own helper thread in a receive loop does not stand for the process."""
    return wait.kind not in ("rpc", "lock", "file_io") or bool(wait.path)
