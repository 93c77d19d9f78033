"""A group that cannot form because somebody gives an address that others cannot reach."""

from __future__ import annotations

from watchdog.evidence import LogEvent, Process
from watchdog.situation import Situation, lines
from watchdog.verdict.judgement import Judgement, accused, accused_by_log, waiting_for


def unreachable_address(situation: Situation) -> Judgement | None:
    """Somebody builds a group, and a line tells of a loopback or missing interface."""
    builders = building(situation)
    said = loopback_lines(situation)
    if not said or not (builders or situation.log(r"new_group|connectFullMesh|init_process_group")):
        return None
    event = said[0]
    process = situation.trainer(event.rank) if event.rank is not None else None
    line = event.text.splitlines()[0][:240]
    why = f"it advertises an address that other hosts cannot reach: `{line}`"
    where = f"new_group (gloo): {line}"
    culprit = (
        accused(situation, process, why, where) if process else accused_by_log(event, why, where)
    )
    waiting = tuple(p for p in builders if p is not process)
    chain = (
        (waiting_for(waiting, situation.wait(waiting[0]).operation, culprit.process),)
        if waiting
        else ()
    )
    return Judgement(
        "hung", f"{culprit.process} advertises an unreachable address.", (culprit,), chain
    )


def building(situation: Situation) -> tuple[Process, ...]:
    """Processes of any role that are building a group."""
    return situation.doing("rendezvous", among=situation.evidence.processes)


def loopback_lines(situation: Situation) -> tuple[LogEvent, ...]:
    """Lines that tell of an address on the loopback or a virtual interface."""
    return situation.log(lines.LOOPBACK)
