"""Is a member missing? A dead process explains every other frame."""

from __future__ import annotations

import re

from watchdog.evidence import LogEvent, Process
from watchdog.exit_status import STALLED
from watchdog.findings import Culprit
from watchdog.situation import Situation, lines
from watchdog.verdict import errors, odd_ranks
from watchdog.verdict.judgement import (
    Judgement,
    accused,
    accused_by_log,
    name_of,
    waiting_for,
)

_MEMBERS = ("trainer", "engine", "engine_worker")
_STALLED = re.compile(rf"\bexit (?:status|code) {STALLED}\b")
_ENDED = re.compile(
    r"Killed process|crashed|exit code|exitcode|sigquit|DEAD|died|dead|SIGKILL|[Ss]egmentation|"
    r"EngineDead|unexpectedly"
)
_PID = re.compile(r"(?:Killed process |pid[=: ]+|Process )(\d+)")


def dead_member(situation: Situation) -> Judgement | None:
    """A trainer, engine or engine worker that is gone, unless it ended after a time-out.

    The end of a rank that was taken down by its own watchdog is a consequence; so are all ends
    after the first. Who is stopped or blocked for sure at the same time is named as well.
    """
    dead = first_dead(situation)
    if not dead or _failed_before(situation, dead[0]):
        return None
    blocked = odd_ranks.blocked_for_sure(situation)
    culprits = tuple(_one_each([*dead, *(blocked.culprits if blocked else ())]))
    named = {culprit.process for culprit in culprits}
    waiting = tuple(p for p in situation.trainers if p.key not in named)
    chain = (waiting_for(waiting, "", ", ".join(sorted(named))),) if waiting else ()
    return Judgement("crashed", culprits[0].why, culprits, chain)


def _failed_before(situation: Situation, dead: Culprit) -> bool:
    """Whether an error of its own, or of anybody earlier, tells more than that it is gone."""
    error = errors.fatal_error(situation)
    if error is None or (
        dead.process in situation.processes and situation.waits[dead.process].kind == "dead"
    ):
        return False
    first = situation.logs.deaths[0] if situation.logs.deaths else None
    return first is None or not situation.logs.is_later(error, first)


def first_dead(situation: Situation) -> tuple[Culprit, ...]:
    """The processes whose end came first, or whose end has no time."""
    found = [
        _from_status(situation, p) for p in situation.evidence.processes if _counts(situation, p)
    ]
    return tuple(found) if found else _from_log(situation)


def ended_by_watchdog(situation: Situation, process: Process) -> bool:
    """Whether it ended because of a stall: by the watchdog, or by the launcher thereupon.

    Such an end is never a cause: a rank ended itself as `MILES_WATCHDOG_ABORT_AFTER` asks, and
    the launcher that saw it sent SIGTERM to the rest.
    """
    if _STALLED.search(process.status_detail):
        return True
    others = situation.evidence.processes
    return "SIGTERM" in process.status_detail and any(
        _STALLED.search(other.status_detail) for other in others
    )


def _counts(situation: Situation, process: Process) -> bool:
    if process.role not in _MEMBERS or situation.wait(process).kind != "dead":
        return False
    if ended_by_watchdog(situation, process):
        return False
    return not _ended_after_time_out(situation, process)


def _ended_after_time_out(situation: Situation, process: Process) -> bool:
    """It wrote a time-out line itself before it ended, or aborted because a peer was lost."""
    own = [
        e
        for e in situation.evidence.log_events
        if process.rank is not None and e.rank == process.rank and process.role == "trainer"
    ]
    aborted = "SIGABRT" in process.status_detail
    return any(
        lines.TIME_OUT.search(event.text) or (aborted and lines.PEER_LOST.search(event.text))
        for event in own
    )


def lines_of_end(situation: Situation, process: Process) -> tuple[LogEvent, ...]:
    """The lines that say of this process that it ended, earliest first."""
    return tuple(e for e in situation.logs.deaths if _tells_of(situation, e, process))


def _tells_of(situation: Situation, event: LogEvent, process: Process) -> bool:
    if not _ENDED.search(event.text):
        return False
    pids = _pids(event)
    if process.pid is not None and process.pid in pids:
        return True
    # A worker's end is its engine's; of two workers the line would have to name one.
    is_engine = process.role == "engine" and process.engine is not None
    return is_engine and event.engine == process.engine and not pids - _own_pids(situation, event)


def _own_pids(situation: Situation, event: LogEvent) -> set[int]:
    """Processes of the engine that wrote the line."""
    return {p.pid for p in situation.engines if p.engine == event.engine and p.pid is not None}


def _pids(event: LogEvent) -> set[int]:
    """The processes of which the line tells: by its fields, its text, or as its writer."""
    named = (event.fields.get(name, "") for name in ("died_pid", "killed_pid", "pid"))
    told = {int(pid) for pid in (*named, *_PID.findall(event.text)) if pid.isdigit()}
    return told or ({event.pid} if event.pid is not None else set())


def _from_status(situation: Situation, process: Process) -> Culprit:
    why = f"{name_of(process)} is dead"
    detail = process.status_detail
    why += f": {detail}" if detail and detail != "dead" else ""
    told = lines_of_end(situation, process)
    if not told:
        return accused(situation, process, why)
    line = told[0].text.splitlines()[0][:160]
    return accused(situation, process, lines.with_source(why, told[0]), f"`{line}`")


def _from_log(situation: Situation) -> tuple[Culprit, ...]:
    late = situation.logs.first_time_out
    for event in situation.logs.deaths:
        if late is not None and situation.logs.is_later(event, late):
            continue
        culprit = _named(situation, event)
        if culprit is not None:
            return (culprit,)
    return ()


def _named(situation: Situation, event: LogEvent) -> Culprit | None:
    """The dead process of a line: by its pid, else by who wrote the line."""
    if not _ENDED.search(event.text):
        return None
    line = event.text.splitlines()[0][:160]
    why = lines.with_source(f"`{line}`", event)
    pids = [int(pid) for pid in _PID.findall(event.text)]
    named = (event.fields.get(name, "") for name in ("died_pid", "killed_pid", "pid"))
    pids = [*(int(pid) for pid in named if pid.isdigit()), *pids]
    for process in situation.evidence.processes:
        if process.pid in pids and process.role in _MEMBERS:
            return accused(situation, process, why)
    if event.engine is None and event.rank is None and not pids:
        return None
    pid = pids[0] if pids else event.pid
    own = [e for e in situation.evidence.log_events if pid is not None and e.pid == pid]
    engine = next((e.engine for e in own if e.engine is not None), event.engine)
    if engine is not None:
        return Culprit(f"engine {engine}", line, why, engine=engine, pid=pid, host=event.host)
    return accused_by_log(event, why, line, pid)


def _one_each(culprits: list[Culprit]) -> list[Culprit]:
    seen: dict[str, Culprit] = {}
    for culprit in culprits:
        seen.setdefault(culprit.process, culprit)
    return list(seen.values())
