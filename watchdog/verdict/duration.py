"""Whether it has lasted long enough to call a wait a stall."""

from __future__ import annotations

from watchdog.evidence import Process
from watchdog.situation import Situation

LEGAL_RPC_S = 70.0
"""A flush of an engine's cache may be retried sixty times, once a second."""

YOUNG_S = 20.0
"""Two samples closer together than this do not show that something stands still."""

ATTACHED_S = 1.5
"""Where somebody looks because the job hangs, much less confirms it."""


def lasted(situation: Situation) -> bool:
    """Whether anything shows that the wait is long.

    The watchdog's deadline, a time-out line, times in the logs, or two samples that are the same.
    """
    evidence = situation.evidence
    if evidence.stall is not None:
        return True
    if situation.logs.first_time_out is not None:
        return True
    duration = situation.logs.duration_s
    if duration is not None and duration > LEGAL_RPC_S:
        return True
    waits = [wait.waited_s for wait in situation.waits.values() if wait.waited_s is not None]
    if waits and max(waits) > LEGAL_RPC_S:
        return True
    return any(stands_still(situation, process) for process in evidence.processes)


def stands_still(situation: Situation, process: Process) -> bool:
    """Whether two samples far enough apart show the same."""
    seen = situation.movements[process.key]
    if seen.moving is not False or len(process.stacks) < 2:
        return False
    enough_s = ATTACHED_S if situation.evidence.origin == "attach" else YOUNG_S
    return seen.between_s is None or seen.between_s >= enough_s
