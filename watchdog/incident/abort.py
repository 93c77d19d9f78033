"""The end of the ranks after a stall that did not resolve, for `MILES_WATCHDOG_ABORT_AFTER`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from watchdog.blackbox import layout
from watchdog.blackbox.reading import EventReading, read_blackbox
from watchdog.capture import bounded
from watchdog.errors import UnusableInputError
from watchdog.exit_status import STALLED
from watchdog.incident.members import COLLECTIVE, Member
from watchdog.incident.rank_evidence import key_of
from watchdog.process_identity import ProcessIdentity, started_ticks
from watchdog.run import stall_ends
from watchdog.run.stall_ends import ABORTED
from watchdog.sentinel import abort_order
from watchdog.timing.stall_context import StallContext
from watchdog.timing.sync_log import append_line

_POLL_S = 0.1
_NOTE_WITHIN_S = 1.0


def is_still_stalled(context: StallContext) -> bool:
    """Whether this rank is still in the section that stalled. In doubt it is."""
    if context.is_over is not None:
        return not context.is_over()
    box: Path | None = context.blackbox
    if box is None:
        return True
    try:
        place = read_blackbox(box, with_events=False)
    except UnusableInputError:
        return True
    if place.section == "":
        # A collective on its own has no section: it is over when it has returned.
        return place.collective is not None and place.collective.ended_s == 0
    return (place.section, place.section_index) == (context.section, context.index)


def how_it_ended(context: StallContext) -> str:
    """`went on`, `failed` where an exception ended it, `is over` where nobody can tell."""
    if context.blackbox is None:
        return "is over"
    try:
        box = read_blackbox(context.blackbox)
    except UnusableInputError:
        return "is over"
    last = [box.collective] if box.collective is not None else []
    ends = [event for event in [*box.events, *last] if _is_end_of_stall(event, context)]
    if not ends:
        return "is over"
    return "failed" if ends[-1].flags & layout.RAISED else "went on"


def _is_end_of_stall(event: EventReading, context: StallContext) -> bool:
    if context.section == COLLECTIVE:
        # Another call of that name may have followed it; it was not as late.
        is_late = event.ended_s - event.at_s >= context.deadline_s
        return event.kind == COLLECTIVE and event.name == context.phase and is_late
    kind = layout.KIND_NAMES[layout.SECTION_ENDS]
    return (event.kind, event.name, event.sequence) == (kind, context.section, context.index)


def end_processes(
    processes: Iterable[tuple[int, int]],
    *,
    grace_s: float = 2.0,
    sleep: Callable[[float], None] = time.sleep,
    kill: Callable[[int, int], None] = os.kill,
) -> bool:
    """Ask processes to end, then end them; whether there were any.

    Args:
        processes: Process id and start time (ticks), so that no other process is meant.
        grace_s: Time between SIGTERM and SIGKILL (s).
        sleep: Waits so many seconds.
        kill: `os.kill`.
    """
    there = [(pid, ticks) for pid, ticks in processes if started_ticks(pid) == ticks != 0]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid, ticks in there:
            if started_ticks(pid) == ticks:
                with contextlib.suppress(OSError):
                    kill(pid, number)
        deadline_s = time.monotonic() + grace_s
        while any(started_ticks(pid) == ticks for pid, ticks in there):
            if time.monotonic() >= deadline_s:
                break
            sleep(_POLL_S)
    return bool(there)


def note(folder: Path, rank: int | None, began_s: float) -> None:
    """Have the report say that the watchdog ends the run. Never raises, nor waits for a dead disk.

    Args:
        folder: Of the incident.
        rank: Who ends it.
        began_s: When the stall was noticed (monotonic, s).
    """
    after_s = time.monotonic() - began_s

    def write() -> None:
        line: dict[str, object] = {"rank": rank, "duration_s": round(after_s, 1)}
        append_line(folder / ABORTED.file_name, line, mode=0o600)
        stall_ends.note(folder, ABORTED, after_s)

    with contextlib.suppress(Exception):
        bounded.result(write, timeout_s=_NOTE_WITHIN_S)


def is_ordered(context: StallContext) -> bool:
    """Whether another process of this host has ordered the end of the run."""
    box = context.blackbox
    return box is not None and abort_order.ordered_by(box.parent) is not None


def is_ordered_soon(
    context: StallContext, *, sleep: Callable[[float], None], within_s: float = 3.0
) -> bool:
    """Wait for another rank of this host to order the end; whether it did.

    Args:
        context: The stall.
        sleep: Waits so many seconds.
        within_s: The ranks of a host do not notice a stall at the same moment (s).
    """
    deadline_s = time.monotonic() + within_s
    while not is_ordered(context) and time.monotonic() < deadline_s:
        sleep(_POLL_S)
    return is_ordered(context)


def end_others(
    others: Iterable[Member],
    *,
    grace_s: float = 3.0,
    sleep: Callable[[float], None] = time.sleep,
    kill: Callable[[int, int], None] = os.kill,
) -> tuple[int, ...]:
    """End the ranks of this host that cannot do so themselves.

    Only a process that a black box names, whose start time agrees, is ended.

    Args:
        others: Ranks other than this one.
        grace_s: Time that they have to end themselves (s).
        sleep: Waits so many seconds.
        kill: `os.kill`.

    Returns:
        The ranks that were ended, ascending.
    """
    others = [one for one in others if one.is_local]
    deadline_s = time.monotonic() + grace_s
    while any(one.is_same_process for one in others) and time.monotonic() < deadline_s:
        sleep(_POLL_S)
    ended = []
    for one in others:
        if one.is_same_process and one.pid != os.getpid():
            try:
                kill(one.pid, signal.SIGKILL)
            except OSError:
                continue
            ended.append(one.rank)
    return tuple(sorted(ended))


def ending_words(identity: ProcessIdentity, why: str) -> str:
    """What a rank says last: which one it is, with what status it ends, and why."""
    name = key_of(identity.rank, identity.host, identity.pid)
    return f"ending {name} with status {STALLED}: {why}"


def end_this_process() -> None:
    """End this process at once with the documented status, whatever its threads do.

    What Python still buffers for its standard streams is written if that takes no time: the
    blocked thread may hold their locks.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            bounded.result(stream.flush, timeout_s=0.3)
        except Exception:  # there is nobody left to tell
            continue
    os._exit(STALLED)
