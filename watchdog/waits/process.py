"""One process: everything that is known of it, made into one wait."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from watchdog.evidence import Collective, Frame, Process, StackSample
from watchdog.waits import gil, kernel
from watchdog.waits.patterns import WaitKind, own_frames, package_path
from watchdog.waits.stack import StackWait, decisive_wait

SETUP_OPS = frozenset({"new_group", "init_process_group", "new_subgroups", "split_group"})
"""Operations of a black box that build a group."""

_WEAK: frozenset[WaitKind] = frozenset(
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
_PHASES: tuple[tuple[str, WaitKind], ...] = (
    (r"^read|weights?_getter", "weight_read"),
    (r"barrier", "collective"),
    (r"connect|rendezvous|reload.*group|init.*group", "rendezvous"),
    (r"pause|flush|resume|continue|send|rpc|update_weights_from", "rpc"),
    (r"sleep|offload|wake", "memory_switch"),
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
    stack = _last_stack(process)
    told = decisive_wait(stack) if stack is not None else None
    wait = _from_stack(told) if told is not None else Wait("unknown")
    wait = _with_black_box(wait, process)
    wait = _with_kernel(wait, process, told)
    holder = gil.holder(process)
    if holder is not None and wait.kind != "paused_memory":
        wait = _from_holder(wait, holder)
    return _with_place(replace(wait, holds_gil=holder is not None or wait.holds_gil), process)


def _last_stack(process: Process) -> StackSample | None:
    """The newest sample; the one before if that shows the same calls and more of them.

    A dump that was cut, and one without native frames, say less than their predecessor.
    """
    usable = [s for s in process.stacks if any(t.frames for t in s.threads)]
    if len(usable) >= 2:
        before, after = usable[-2:]
        if is_cut(after, before):
            return before
        lacks_native = not _is_native(after) and _is_native(before)
        if lacks_native and _python_calls(after) == _python_calls(before):
            return before
    return usable[-1] if usable else None


def is_cut(sample: StackSample, whole: StackSample) -> bool:
    """Whether the main thread of a sample is the beginning of that of the other."""
    few, many = _calls(sample), _calls(whole)
    return len(few) < len(many) and many[: len(few)] == few


def _calls(sample: StackSample) -> list[tuple[str, int]]:
    main = next((t for t in sample.threads if t.frames), None)
    return [(f.function, f.line) for f in main.frames if "0x" not in f.function] if main else []


def _is_native(sample: StackSample) -> bool:
    return any(frame.native for thread in sample.threads for frame in thread.frames)


def _python_calls(sample: StackSample) -> list[tuple[str, int]]:
    main = next((t for t in sample.threads if t.frames), None)
    return [(f.function, f.line) for f in main.frames if not f.native] if main else []


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
        if wait.kind in _WEAK or wait.kind in ("collective", "rendezvous"):
            return replace(
                wait,
                kind="rendezvous" if setup else "collective",
                operation=collective.op,
                group=collective.group,
                group_ranks=collective.group_ranks,
                sequence=collective.sequence,
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
    fault = kernel.thread_in(process, kernel.USERFAULT_CHANNELS)
    if fault is None and _memory_is_paused(process, wait):
        fault = kernel.thread_in(process, kernel.SIGNAL_PAUSE_CHANNELS)
    if fault is not None:
        operation = wait.operation if wait.kind == "weight_read" else "read of paused memory"
        return replace(wait, kind="paused_memory", operation=operation, note=f"wchan {fault.wchan}")
    thread = kernel.main_thread(process)
    if thread is not None and kernel.waits_for_file(thread) and wait.kind in (*_WEAK, "file_io"):
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
    """The package's path, or the last parts of one that is not installed."""
    short = package_path(path)
    parts = short.split("/")
    return "/".join(parts[-4:]) if short == path and len(parts) > 4 else short


def _with_place(wait: Wait, process: Process) -> Wait:
    names: list[str] = []
    placed = False
    shown = (*wait.frames, *(f for f in wait.path if f not in wait.frames))
    for frame in [f for f in shown if not f.function.startswith("0x")] or shown:
        own = frame in wait.path
        name = _place(frame) if own and not placed else frame.function
        placed = placed or own
        if not names or names[-1] != name:
            names.append(name)
    where = " < ".join(names[:10])
    phase = process.position.phase if process.position is not None else ""
    if wait.kind in ("dead", "stopped", "no_answer") and wait.operation:
        where = f"{wait.operation}, last seen in {where}" if where else wait.operation
    if wait.note:
        where = f"{where} [{wait.note}]" if where else wait.note
    return replace(wait, where=", ".join(part for part in (phase, where or wait.operation) if part))
