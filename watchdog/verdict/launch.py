"""A part of the job was never started, and the others wait for it to join."""

from __future__ import annotations

from watchdog.evidence import LogEvent
from watchdog.situation import Situation
from watchdog.verdict import errors
from watchdog.verdict.judgement import Judgement


def launch_failure(situation: Situation) -> LogEvent | None:
    """The first line that says that something could not be started, before any other failure."""
    found = [e for e in situation.evidence.log_events if e.kind == "launch_failed"]
    first = min(found, key=situation.logs.order) if found else None
    late = situation.logs.first_time_out
    if first is None or errors.fatal_error(situation) is not None:
        return None
    if late is not None and situation.logs.is_later(first, late):
        return None
    return first


def never_started(situation: Situation) -> Judgement | None:
    """A launch that failed, and a group that its ranks never joined."""
    event = launch_failure(situation)
    if event is None or not missing_members(situation):
        return None
    line = event.text.strip().splitlines()[0][:200]
    told = missing_members(situation)[0].text.strip().splitlines()[-1][:160]
    return Judgement("crashed", f"A part of the job was never started: `{line}`; then `{told}`.")


def missing_members(situation: Situation) -> tuple[LogEvent, ...]:
    """Lines that say how few of the members joined a store or group."""
    return tuple(
        event
        for event in situation.evidence.log_events
        if event.fields.get("joined", "").isdigit()
        and event.fields.get("world_size", "").isdigit()
        and int(event.fields["joined"]) < int(event.fields["world_size"])
    )


def first_failure(situation: Situation) -> LogEvent | None:
    """What everything else follows from: the first fatal error, or a launch that failed."""
    return errors.fatal_error(situation) or launch_failure(situation)
