"""Events of one log, folded: what repeats is counted, not kept."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from watchdog.intake.parts import Parts, RawEvent
from watchdog.intake.times import Moment

KEEP_FIRST = 4
KEEP_LAST = 12
MAX_KEYS = 4_000
# Fields that make two events of one kind different things; the others are their values.
_KEY_FIELDS = (
    "op",
    "stage",
    "status",
    "name",
    "path",
    "what",
    "when",
    "replica",
    "error",
    "killed_pid",
    "from_rank",
)


@dataclass
class _Series:
    first: list[RawEvent] = field(default_factory=list)
    last: deque[RawEvent] = field(default_factory=lambda: deque(maxlen=KEEP_LAST))
    count: int = 0


class FoldedEvents:
    """Collects events in bounded memory: first and last of every series, and how many."""

    def __init__(self) -> None:
        self._series: dict[tuple[object, ...], _Series] = {}

    def add(self, event: RawEvent, repeated: int = 0) -> None:
        """Count an event, keep it if it is among the first or last of its series."""
        who, fields = event.who, event.fields
        key: tuple[object, ...] = (
            event.kind,
            who.pid,
            who.rank,
            who.local_rank,
            who.engine,
            who.worker,
            *(fields.get(name) for name in _KEY_FIELDS),
        )
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= MAX_KEYS:
                key = (event.kind,)
                series = self._series.get(key)
            if series is None:
                series = self._series[key] = _Series()
        series.count += 1 + repeated
        if len(series.first) < KEEP_FIRST:
            series.first.append(event)
        else:
            series.last.append(event)

    def deliver(self, parts: Parts, first: tuple[int, Moment] | None = None) -> None:
        """Hand over what was kept, in the order of the file.

        Args:
            parts: Where to.
            first: The first line with a time, and the time: what stands before it is no later.
        """
        kept: list[RawEvent] = []
        for series in self._series.values():
            events = [*series.first, *series.last]
            if series.count > 1:
                last = events[-1]
                fields = {**last.fields, "count": str(series.count)}
                events[-1] = replace(last, fields=fields)
            kept += events
        for event in sorted(kept, key=lambda event: event.line):
            if event.moment is None and first is not None and event.line < first[0]:
                fields = {**event.fields, "time_of": "the line after"}
                event = replace(event, moment=first[1], fields=fields)
            parts.add_event(event)
