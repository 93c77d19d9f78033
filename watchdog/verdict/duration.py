"""Whether it has lasted long enough to call a wait a stall."""

from __future__ import annotations

from watchdog.evidence import LogEvent, Process
from watchdog.situation import Situation

LEGAL_RPC_S = 70.0
"""A flush of an engine's cache may be retried sixty times, once a second."""

YOUNG_S = 20.0
"""Two samples closer together than this do not show that something stands still."""

ATTACHED_S = 1.5
"""Where somebody looks because the job hangs, much less confirms it."""


SILENT_S = 300.0
"""Logs of a job that trains or syncs say something more often than this."""

GENERATION_S = 3600.0
"""Who waits for rollouts may have nothing to say for this long."""

DAY_S = 86_400.0
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY_S}
_WORDS = {"half an": 0.5, "two": 2.0, "three": 3.0, "several": 3.0}


def lasted(situation: Situation) -> bool:
    """Whether anything shows that the wait is long.

    What `observed_to_last` sees, silence until somebody looked, or a remark that says how long.
    """
    if observed_to_last(situation):
        return True
    silence = GENERATION_S if situation.at(r"rollout|generat") else SILENT_S
    return told_s(situation) > LEGAL_RPC_S or (situation.silent_s or 0) > silence


def observed_to_last(situation: Situation) -> bool:
    """Whether a measurement shows that the wait is long.

    The watchdog's deadline, a time-out line, times in the logs, an engine whose requests get no
    token, or two samples that are the same.
    """
    evidence = situation.evidence
    if evidence.stall is not None:
        return True
    if situation.logs.first_time_out is not None:
        return True
    if any(history.frozen for history in situation.engine_histories):
        return True
    duration = situation.logs.duration_s
    if duration is not None and duration > LEGAL_RPC_S:
        return True
    waits = [wait.waited_s for wait in situation.waits.values() if wait.waited_s is not None]
    if waits and max(waits) > LEGAL_RPC_S:
        return True
    return any(stands_still(situation, process) for process in evidence.processes)


def told_s(situation: Situation) -> float:
    """The longest time that a remark says it stands still (s), 0 where none does."""
    return max((_told_s(situation, event) for event in situation.remarks), default=0.0)


def _told_s(situation: Situation, event: LogEvent) -> float:
    fields = event.fields
    if "unit" in fields:
        amount = fields.get("amount", "1")
        number = float(amount) if amount[0].isdigit() else _WORDS.get(amount.lower(), 1.0)
        return number * _UNITS_S[fields["unit"][0].lower()]
    begin, end = _clock_s(fields.get("begin", "")), _clock_s(fields.get("end", ""))
    if end is None and situation.observed_at_s:
        end = situation.observed_at_s[-1] % DAY_S
    return (end - begin) % DAY_S if begin is not None and end is not None else 0.0


def _clock_s(text: str) -> float | None:
    parts = [int(part) for part in text.split(":") if part.isdigit()]
    return sum(n * s for n, s in zip(parts, (3600, 60, 1), strict=False)) if parts else None


def stands_still(situation: Situation, process: Process) -> bool:
    """Whether two samples far enough apart show the same."""
    seen = situation.movements[process.key]
    if seen.moving is not False or len(process.stacks) < 2:
        return False
    enough_s = ATTACHED_S if situation.evidence.origin == "attach" else YOUNG_S
    return seen.between_s is None or seen.between_s >= enough_s
