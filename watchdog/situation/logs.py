"""The log lines of all processes, by meaning and by time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from watchdog.evidence import Evidence, LogEvent
from watchdog.situation import lines

_COUNTER = re.compile(r"(?P<done>\d+)/(?P<total>\d+)\b")
_SECONDS = re.compile(r"for (\d+) seconds|elapsed_s=([\d.]+)")
_LOAD = re.compile(
    r"#token: (\d+)|Avg generation throughput: ([\d.]+)|gen throughput \(token/s\): ([\d.]+)"
)


@dataclass(frozen=True)
class Progress:
    """A counter in the logs that grows, or stands still.

    Attributes:
        first: The first line with it.
        last: The last one.
        done: Its last value, as the line says.
        grows: Whether it grew to the end of that log.
    """

    first: LogEvent
    last: LogEvent
    done: str
    grows: bool


class Logs:
    """Questions about log lines. Lines without time keep the order of their file."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.events = evidence.log_events

    def matching(self, expression: re.Pattern[str]) -> tuple[LogEvent, ...]:
        """The lines whose text matches."""
        return lines.matching(self.events, expression)

    @cached_property
    def first_time_out(self) -> LogEvent | None:
        """The earliest line that a wait was too long or a peer lost."""
        found = [
            e
            for e in self.events
            if lines.TIME_OUT.search(e.text) or lines.PEER_LOST.search(e.text)
        ]
        return min(found, key=_order) if found else None

    @cached_property
    def errors(self) -> tuple[LogEvent, ...]:
        """Errors of their own, earliest first; a retried request is none."""
        return tuple(sorted((e for e in self.events if lines.is_error(e)), key=_order))

    @cached_property
    def deaths(self) -> tuple[LogEvent, ...]:
        """Lines that say that a process ended, earliest first."""
        return tuple(sorted(self.matching(lines.DEATH), key=_order))

    @cached_property
    def earliest_error(self) -> LogEvent | None:
        """The first error or death that no time-out line precedes."""
        found = sorted({id(e): e for e in (*self.errors, *self.deaths)}.values(), key=_order)
        if not found:
            return None
        first, late = found[0], self.first_time_out
        if (
            late is not None
            and first.time_s is not None
            and late.time_s is not None
            and late.time_s < first.time_s
        ):
            return None
        return first

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
        return bool(asleep) and (not awake or _order(asleep[-1]) > _order(awake[-1]))

    def of_engine(self, index: int | None) -> tuple[LogEvent, ...]:
        """The lines of one engine, in order; of those that belong to none with `None`."""
        return tuple(e for e in self.events if e.engine == index)

    def waited_s(self) -> float | None:
        """The longest time that any line says somebody had been waiting (s)."""
        found = [float(a or b) for e in self.events for a, b in _SECONDS.findall(e.text)]
        return max(found, default=None)


def _order(event: LogEvent) -> tuple[float, str, int]:
    return (event.time_s if event.time_s is not None else float("inf"), event.file, event.line)
