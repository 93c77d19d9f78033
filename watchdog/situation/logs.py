"""The log lines of all processes, by meaning and by time."""

from __future__ import annotations

import re
from functools import cached_property

from watchdog.evidence import Evidence, LogEvent
from watchdog.situation import lines

_WORK = frozenset({"progress", "trainer_phase", "sync_begin", "sync_done"})
_COUNTER = re.compile(r"(?P<done>\d+)/(?P<total>\d+)\b")
_SECONDS = re.compile(r"for (\d+) seconds|elapsed_s=([\d.]+)")
_LOAD = re.compile(
    r"#token: (\d+)|Avg generation throughput: ([\d.]+)|gen throughput \(token/s\): ([\d.]+)"
)


class Logs:
    """Questions about log lines. Lines without time keep the order of their file."""

    def __init__(self, evidence: Evidence) -> None:
        self.events = evidence.log_events
        self._times = _carried_times(self.events)

    def matching(self, expression: re.Pattern[str]) -> tuple[LogEvent, ...]:
        """The lines whose text matches."""
        return lines.matching(self.events, expression)

    @cached_property
    def _of_this_run(self) -> tuple[LogEvent, ...]:
        """The lines since the launcher last restarted the workers, if they did something since."""
        restarts = [e for e in self.events if e.kind == "worker_group_restart"]
        last = max((self.order(e) for e in restarts), default=None)
        if last is None or not any(e.kind in _WORK and self.order(e) > last for e in self.events):
            return self.events
        return tuple(e for e in self.events if self.order(e) > last)

    @cached_property
    def first_time_out(self) -> LogEvent | None:
        """The earliest line that a wait was too long or a peer lost."""
        found = [
            e
            for e in self._of_this_run
            if lines.TIME_OUT.search(e.text) or lines.PEER_LOST.search(e.text)
        ]
        return min(found, key=self.order) if found else None

    @cached_property
    def errors(self) -> tuple[LogEvent, ...]:
        """Errors of their own, earliest first; a retried request is none."""
        return tuple(sorted((e for e in self._of_this_run if lines.is_error(e)), key=self.order))

    @cached_property
    def deaths(self) -> tuple[LogEvent, ...]:
        """Lines that say that a process ended, earliest first; not at the watchdog's hand."""
        ends = [e for e in self.matching(lines.DEATH) if not lines.ENDED_BY_WATCHDOG.search(e.text)]
        return tuple(sorted(ends, key=self.order))

    @cached_property
    def earliest_error(self) -> LogEvent | None:
        """The first error or death that no time-out line precedes."""
        found = sorted({id(e): e for e in (*self.errors, *self.deaths)}.values(), key=self.order)
        if not found:
            return None
        first, late = found[0], self.first_time_out
        return None if late is not None and self.is_later(first, late) else first

    @cached_property
    def duration_s(self) -> float | None:
        """Time from the last line of a sync that began to the last line of all (s)."""
        times = [e.time_s for e in self.events if e.time_s is not None]
        begun = [e.time_s for e in self.matching(lines.SYNC_BEGIN) if e.time_s is not None]
        if not times or not begun:
            return None
        return max(times) - max(begun)

    @cached_property
    def first_sync(self) -> bool | None:
        """Whether no line tells of a sync that ended; `None` without any line of a sync."""
        if self.matching(lines.SYNC_END):
            return False
        return True if self.matching(lines.SYNC_BEGIN) else None

    @cached_property
    def trainer_sleeps(self) -> bool | None:
        """Whether the last lifecycle line of the trainers is a sleep."""
        trainer = [e for e in self.events if e.engine is None]
        asleep = [e for e in trainer if lines.TRAINER_SLEEP.search(e.text)]
        awake = [e for e in trainer if lines.TRAINER_WAKE.search(e.text)]
        if not asleep and not awake:
            return None
        return bool(asleep) and (not awake or self.order(asleep[-1]) > self.order(awake[-1]))

    def when(self, event: LogEvent) -> float | None:
        """Time of the line, or of the last line with a time before it in the same file."""
        return self._times.get(id(event))

    def order(self, event: LogEvent) -> tuple[float, str, int]:
        """Sort key: by time, then by place; lines without any time last."""
        when = self.when(event)
        return (when if when is not None else float("inf"), event.file, event.line)

    def is_later(self, event: LogEvent, other: LogEvent) -> bool:
        """Whether the first line came after the second, as far as one can tell."""
        if event.file == other.file:
            return event.line > other.line
        when, then = self.when(event), self.when(other)
        return when is not None and then is not None and when > then

    def of_engine(self, index: int | None) -> tuple[LogEvent, ...]:
        """The lines of one engine, in order; of those that belong to none with `None`."""
        return tuple(e for e in self.events if e.engine == index)

    def waited_s(self) -> float | None:
        """The longest time that any line says somebody had been waiting (s)."""
        found = [float(a or b) for e in self.events for a, b in _SECONDS.findall(e.text)]
        return max(found, default=None)


def _carried_times(events: tuple[LogEvent, ...]) -> dict[int, float]:
    """Times by identity of the event; a line without one has that of the line before it."""
    found: dict[int, float] = {}
    last: tuple[str, float] | None = None
    for event in events:
        if event.time_s is not None:
            last = (event.file, event.time_s)
        if last is not None and last[0] == event.file:
            found[id(event)] = last[1]
    return found
