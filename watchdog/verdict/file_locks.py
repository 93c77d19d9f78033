"""A lock file that is older than every process of the job, and processes that poll for it."""

from __future__ import annotations

from watchdog.evidence import LogEvent, Process
from watchdog.situation import Situation
from watchdog.verdict.groups import phrase
from watchdog.verdict.judgement import Judgement, names_of

FILE_LOCKS = r"file_baton|filelock|FileBaton"
MIN_OLDER_S = 600.0


def stale_file_lock(situation: Situation) -> Judgement | None:
    """All that were looked at poll for one lock file, which nobody of the job can have taken."""
    polling = pollers(situation)
    file = stale_lock(situation)
    if not polling or file is None:
        return None
    seen = tuple(p for p in situation.evidence.processes if situation.with_stack(p))
    if any(situation.moving(p) for p in polling) or situation.doing("slow_work", among=seen):
        return None
    path = file.fields.get("path", "")
    reason = (
        f"{names_of(polling)}: {phrase(situation.wait(polling[0]))}; {path} is of an earlier run."
    )
    return Judgement("hung", reason)


def pollers(situation: Situation) -> tuple[Process, ...]:
    """The processes that wait in a file lock."""
    found = situation.at(FILE_LOCKS, among=situation.evidence.processes)
    return tuple(p for p in found if situation.wait(p).kind in ("lock", "sleep", "file_wait"))


def stale_lock(situation: Situation) -> LogEvent | None:
    """A lock file that is listed with a time long before the first line of any log."""
    files = [e for e in situation.evidence.log_events if e.kind == "lock_file"]
    times = [
        e.time_s
        for e in situation.evidence.log_events
        if e.kind != "lock_file" and e.time_s is not None
    ]
    for file in files:
        if file.time_s is not None and times and file.time_s < min(times) - MIN_OLDER_S:
            return file
    return None
