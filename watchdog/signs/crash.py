"""Signs of members that died and of errors that came first."""

from __future__ import annotations

import re

from watchdog.evidence import LogEvent, Process
from watchdog.situation import Situation
from watchdog.verdict import deaths, errors, verdict_of


def crashed(situation: Situation) -> bool:
    """Whether the verdict is that something died or failed first."""
    return verdict_of(situation).state == "crashed"


def first_error(situation: Situation, expression: str) -> LogEvent | None:
    """The fatal first error, if its text or exception matches."""
    event = errors.fatal_error(situation)
    if event is None:
        return None
    text = " ".join((event.text, *event.fields.values()))
    return event if re.search(expression, text) else None


def dead_processes(situation: Situation) -> tuple[Process, ...]:
    """The processes of the evidence that are gone, but for those the watchdog ended."""
    gone = situation.doing("dead", among=situation.evidence.processes)
    return tuple(p for p in gone if not deaths.ended_by_watchdog(situation, p))


def named_culprits(situation: Situation) -> tuple[Process, ...]:
    """The verdict's culprits that are processes of the evidence."""
    return tuple(
        situation.processes[c.process]
        for c in verdict_of(situation).culprits
        if c.process in situation.processes
    )


def earlier(situation: Situation, event: LogEvent) -> bool:
    """Whether no time-out line came before it."""
    late = situation.logs.first_time_out
    if late is None or event.time_s is None or late.time_s is None:
        return True
    return event.time_s <= late.time_s
