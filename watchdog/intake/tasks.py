"""Tasks of a scheduler that ended: which rank each was, and whether its end came first."""

from __future__ import annotations

from collections.abc import Iterator

from watchdog.intake.parts import Parts, RawEvent, Who

MAX_TASKS = 10_000
MAX_KILLED_TOGETHER = 4
"""More tasks than this, ended by one line without a reason, were ended by the scheduler."""

_OUT_OF_MEMORY = "Out Of Memory"
_BY_THEMSELVES = (_OUT_OF_MEMORY, "Bus error", "Segmentation fault", "bad termination")
_LABEL = "srun label"


def ended_tasks(parts: Parts) -> Iterator[tuple[RawEvent, Who, str]]:
    """Each task whose end nothing else explains: its line, who it was, and how it ended.

    An exit status, an abort and a termination are what a time-out and the launcher leave behind.
    """
    ends = [event for event in parts.events if event.kind == "task_ended"]
    if not ends or not _tasks_are_ranks(parts):
        return
    for event in ends:
        how, tasks = event.fields.get("how", ""), _numbers(event.fields.get("tasks", ""))
        first = event is ends[0] and how == "Killed" and len(tasks) <= MAX_KILLED_TOGETHER
        if how not in _BY_THEMSELVES and not first:
            continue
        by = (f"{event.kind} in {event.file}",)
        for task in tasks:
            who = Who(rank=task, host=event.fields.get("host", ""), role="trainer", by=by)
            yield event, who, "killed: out of memory" if how == _OUT_OF_MEMORY else how.lower()


def _tasks_are_ranks(parts: Parts) -> bool:
    """Whether no line's label contradicts the rank that its own prefix gives."""
    return all(
        event.who.rank in (None, event.who.local_rank)
        for event in parts.events
        if event.who.local_rank is not None and any(_LABEL in word for word in event.who.by)
    )


def _numbers(text: str) -> list[int]:
    """`3`, `1-3`, `[0,2-4]` as numbers, at most `MAX_TASKS`."""
    found: list[int] = []
    for part in text.strip("[]").split(","):
        first, _, last = part.partition("-")
        if not first.isdigit():
            continue
        end = int(last) if last.isdigit() else int(first)
        found += range(int(first), min(end, int(first) + MAX_TASKS) + 1)
    return found[:MAX_TASKS]
