"""The earliest error of all logs outranks any stack."""

from __future__ import annotations

import re

from watchdog.evidence import LogEvent, Process
from watchdog.findings import Culprit
from watchdog.situation import Situation, lines
from watchdog.verdict.judgement import Judgement, accused, accused_by_log, waiting_for

_OTHER_ACTOR = re.compile(r"ray::[\w.]+\(\) \(pid=(\d+)")
_FUNCTION = re.compile(r"(?:, in |^\s+in )(\S+)", re.MULTILINE)


def earliest_error(situation: Situation) -> Judgement | None:
    """An error of a member that came before every time-out, and that it did not survive."""
    event = fatal_error(situation)
    if event is None:
        return None
    culprit = _writer(situation, event)
    others = tuple(p for p in situation.trainers if p.key != culprit.process)
    chain = (waiting_for(others, "", culprit.process),) if others else ()
    return Judgement("crashed", f"{culprit.process} failed first: {culprit.why}", (culprit,), chain)


def fatal_error(situation: Situation) -> LogEvent | None:
    """The first error that its writer did not survive, `None` where there is none."""
    if "fatal_error" not in situation.memo:
        situation.memo["fatal_error"] = _fatal_error(situation)
    found: LogEvent | None = situation.memo["fatal_error"]
    return found


def _fatal_error(situation: Situation) -> LogEvent | None:
    late = situation.logs.first_time_out
    signs = [e for e in situation.evidence.log_events if _is_sign_of_life(e)]
    for event in situation.logs.errors:
        if late is not None and situation.logs.is_later(event, late):
            continue
        if _is_member(situation, event) and not _survived(situation, event, signs):
            return event
    return None


def _is_member(situation: Situation, event: LogEvent) -> bool:
    if event.rank is not None or event.engine is not None:
        return True
    members = ("trainer", "engine", "engine_worker")
    return event.pid is not None and any(
        p.pid == event.pid and p.role in members for p in situation.evidence.processes
    )


def _is_sign_of_life(event: LogEvent) -> bool:
    """Whether the line tells of useful work: a finished sync, an engine's answered request."""
    if lines.SYNC_END.search(event.text):
        return True
    found = lines.REQUEST.search(event.text) if event.engine is not None else None
    return bool(found and found["status"] == "200" and not lines.HEALTH.search(found["path"]))


def _survived(situation: Situation, event: LogEvent, signs: list[LogEvent]) -> bool:
    """Whether its writer did useful work afterwards."""
    return any(
        _same_writer(event, later) and situation.logs.is_later(later, event) for later in signs
    )


def _same_writer(event: LogEvent, later: LogEvent) -> bool:
    if event.engine is not None:
        return later.engine == event.engine
    if event.rank is not None:
        return later.rank == event.rank and later.engine is None
    return event.pid is not None and later.pid == event.pid


def error_place(event: LogEvent) -> str:
    """The innermost functions of its traceback and its message: where it failed."""
    frames = [line.split(" (", 1)[0] for line in event.fields.get("frames", "").splitlines()]
    functions = frames or list(reversed(_FUNCTION.findall(event.text)))
    names = [n for n in dict.fromkeys(functions) if n not in ("wrapper", "<module>", "<dictcomp>")]
    last = next((line.strip() for line in reversed(event.text.splitlines()) if line.strip()), "")
    message = event.fields.get("message", "") or last
    exception = event.fields.get("exception", "")
    said = f"{exception}: {message}" if exception and exception not in message else message
    return " | ".join(part for part in (" < ".join(names[:10]), said[:200]) if part)


def _writer(situation: Situation, event: LogEvent) -> Culprit:
    """Who failed: the other actor that the error names, else whoever wrote it."""
    place = error_place(event)
    why = f"`{lines.exception_of(event) or event.kind}` in {place[:200]}"
    for pid in _named_pids(situation, event):
        process, index = _by_pid(situation, pid), _engine_of_actor(situation, pid)
        if process is not None:
            return accused(situation, process, why, place)
        if pid != event.pid:
            name = f"engine {index}" if index is not None else f"pid {pid}"
            return Culprit(name, place, why, engine=index, pid=pid)
    process = _by_pid(situation, event.pid) or _by_rank(situation, event.rank)
    if process is not None and process.role != "driver":
        return accused(situation, process, why, place)
    return accused_by_log(event, why, place)


def _named_pids(situation: Situation, event: LogEvent) -> list[int]:
    """Processes of other actors whose failure this error passes on."""
    near = [
        e
        for e in situation.evidence.log_events
        if e.file == event.file and e.line == event.line and e.fields.get("task_pid", "").isdigit()
    ]
    return [
        *(int(pid) for pid in _OTHER_ACTOR.findall(event.text)),
        *(int(e.fields["task_pid"]) for e in near),
    ]


def _engine_of_actor(situation: Situation, pid: int) -> int | None:
    """Index of the engine whose actor has this pid, as a table in the files says."""
    for event in situation.evidence.log_events:
        if (
            event.fields.get("actor_pid") == str(pid)
            and event.fields.get("engine_index", "").isdigit()
        ):
            return int(event.fields["engine_index"])
    return None


def _by_pid(situation: Situation, pid: int | None) -> Process | None:
    return next((p for p in situation.evidence.processes if pid is not None and p.pid == pid), None)


def _by_rank(situation: Situation, rank: int | None) -> Process | None:
    return situation.trainer(rank) if rank is not None else None
