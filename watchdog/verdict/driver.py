"""The driver failed, and its actors wait for a next task that will not come."""

from __future__ import annotations

from watchdog.evidence import LogEvent
from watchdog.findings import Culprit
from watchdog.situation import Situation
from watchdog.verdict.errors import error_place, error_words
from watchdog.verdict.judgement import Judgement, waiting_for

_WORK = ("trainer_phase", "sync_begin", "sync_done", "progress", "rollout_done")


def failed_driver(situation: Situation) -> Judgement | None:
    """An error of the driver that nothing follows, while every trainer waits for a task."""
    event = driver_error(situation)
    if event is None:
        return None
    place = error_place(event)
    why = error_words(event)
    idle = situation.doing("idle")
    chain = (waiting_for(idle, "", "a task of the driver"),)
    culprit = Culprit("driver", place, why, pid=event.pid, host=event.host)
    return Judgement("crashed", f"The driver failed: {why}: {place}", (culprit,), chain)


def driver_error(situation: Situation) -> LogEvent | None:
    """The last error of the driver, if nobody did anything after it."""
    seen = [p for p in situation.trainers if situation.with_stack(p)]
    idle = [p for p in seen if situation.wait(p).operation == "actor loop"]
    if not idle or len(idle) < len(seen) or _driver_lives(situation):
        return None
    errors = [e for e in situation.logs.errors if e.kind == "traceback" and _of_driver(e)]
    if not errors:
        return None
    last = errors[-1]
    work = [e for e in situation.evidence.log_events if e.kind in _WORK]
    return None if any(situation.logs.is_later(e, last) for e in work) else last


def _of_driver(event: LogEvent) -> bool:
    """Nobody's prefix: Ray gives one to every line but the driver's."""
    return event.rank is None and event.engine is None and event.pid is None


def _driver_lives(situation: Situation) -> bool:
    drivers = [p for p in situation.evidence.processes if p.role == "driver"]
    return any(situation.with_stack(p) or ".py" in p.command for p in drivers)
