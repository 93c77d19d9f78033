"""The earliest error of all logs outranks any stack."""

from __future__ import annotations

import re
from dataclasses import replace

from watchdog.evidence import LogEvent, Process
from watchdog.findings import Culprit
from watchdog.situation import Situation, lines
from watchdog.verdict.judgement import Judgement, accused, accused_by_log, waiting_for

MAX_ALIKE = 4
MOMENTS_S = 60.0

_OTHER_ACTOR = re.compile(r"ray::[\w.]+\(\) \(pid=(\d+)")
_OWN_RANK = re.compile(r"\[?[Rr]ank[ =]?(\d+)\]?[ :](?!(?:has|is|did|was|failed|died)\b)")
_FUNCTION = re.compile(r"(?:, in |^\s+in )(\S+)", re.MULTILINE)


def earliest_error(situation: Situation) -> Judgement | None:
    """An error of a member that came before every time-out, and that it did not survive."""
    event = fatal_error(situation)
    if event is None:
        return None
    culprit = _writer(situation, event)
    culprits = (culprit, *_failed_alike(situation, event, culprit))
    named = {c.process for c in culprits}
    others = tuple(p for p in situation.trainers if p.key not in named)
    chain = (waiting_for(others, "", ", ".join(sorted(named))),) if others else ()
    reason = f"{culprit.process} failed first: {culprit.why}: {culprit.where}"
    return Judgement("crashed", reason, culprits, chain)


def _failed_alike(situation: Situation, event: LogEvent, first: Culprit) -> tuple[Culprit, ...]:
    """Other members that failed with the same error at the same place, within moments.

    Each met the cause by itself. If most of them did, the first is named alone: it is everybody's.
    """
    found: dict[str, Culprit] = {}
    for other in situation.logs.errors:
        alike = lines.exception_of(other) == lines.exception_of(event) and error_place(
            other
        ) == error_place(event)
        if not alike or other.kind != event.kind or not _is_member(situation, other):
            continue
        if not _within_moments(situation, event, other):
            continue
        culprit = _writer(situation, other)
        if culprit.process != first.process:
            found.setdefault(culprit.process, culprit)
    return tuple(found.values()) if len(found) < MAX_ALIKE else ()


def _within_moments(situation: Situation, event: LogEvent, other: LogEvent) -> bool:
    one, two = situation.logs.when(event), situation.logs.when(other)
    return one is None or two is None or abs(one - two) <= MOMENTS_S


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


def error_words(event: LogEvent) -> str:
    """How an error is told beside its place: `it failed with RuntimeError (a.log:4, 05:41:17)`."""
    return lines.with_source(f"it failed with {lines.exception_of(event) or event.kind}", event)


def _writer(situation: Situation, event: LogEvent) -> Culprit:
    """Who failed: the other actor that the error names, else whoever wrote it."""
    place = error_place(event)
    why = error_words(event)
    for pid in _named_pids(situation, event):
        process, index = _by_pid(situation, pid), _engine_of_actor(situation, pid)
        if process is not None:
            return accused(situation, process, why, place)
        if pid != event.pid:
            name = f"engine {index}" if index is not None else f"pid {pid}"
            return Culprit(name, place, why, engine=index, pid=pid)
    process = _by_pid(situation, event.pid) or _by_rank(situation, event.rank)
    if process is not None and process.role != "driver":
        culprit = accused(situation, process, why, place)
        rank = _rank_it_tells(situation, process)
        return culprit if rank is None else replace(culprit, rank=rank)
    return accused_by_log(event, why, place)


def _rank_it_tells(situation: Situation, process: Process) -> int | None:
    """The rank that a trainer's own lines begin with, where nothing else gave it one."""
    if process.role != "trainer" or process.rank is not None or process.pid is None:
        return None
    own = [e.text for e in situation.evidence.log_events if e.pid == process.pid]
    told = {int(found[1]) for text in own if (found := _OWN_RANK.match(text))}
    return told.pop() if len(told) == 1 else None


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
