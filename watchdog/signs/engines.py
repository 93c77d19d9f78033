"""Signs on the engines' side, for rules."""

from __future__ import annotations

import re

from watchdog.evidence import LogEvent, Process
from watchdog.situation import Situation
from watchdog.situation.engine_history import EngineHistory
from watchdog.verdict.engines import odd_workers, worker_parties

__all__ = [
    "callers",
    "during",
    "history_with",
    "members",
    "odd_workers",
    "quoted_load",
    "worker_parties",
    "wrote",
]


def callers(situation: Situation) -> tuple[Process, ...]:
    """Trainers (and a driver) that wait for an answer."""
    return situation.doing("rpc", "await", among=situation.evidence.processes)


def members(situation: Situation, *kinds: str) -> tuple[Process, ...]:
    """Engine processes whose wait is of one of the kinds."""
    return tuple(p for p in situation.engines if situation.wait(p).kind in kinds)


def history_with(situation: Situation, expression: str) -> tuple[EngineHistory, LogEvent] | None:
    """The first engine that left a line that matches, and its last such line."""
    for history in situation.engine_histories:
        found = [e for e in history.events if re.search(expression, e.text)]
        if found:
            return history, found[-1]
    return None


def wrote(situation: Situation, event: LogEvent) -> bool:
    """Whether an engine or one of its workers wrote the line, with an index or without."""
    if event.engine is not None:
        return True
    return event.pid is not None and any(p.pid == event.pid for p in situation.engines)


def during(history: EngineHistory, op: str, expression: str) -> tuple[LogEvent, ...]:
    """Lines of the engine after its last call of this kind that match."""
    control = history.last(op)
    if control is None:
        return ()
    start = history.events.index(control.event)
    return tuple(e for e in history.events[start:] if re.search(expression, e.text))


def quoted_load(history: EngineHistory) -> str:
    """Its last statistics line, "" without any."""
    return history.loads[-1].text[:160] if history.loads else ""
