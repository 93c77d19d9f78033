"""Counters in the logs that still count when somebody looked: what counts is not hung.

The end of a log does not tell whether the log ends there or the job does. A counter is believed to
go on only where something else tells the time of the look: a dump's heading, a shell's `date`, a
remark, the name of a file. A look that the log outlives tells of the log's end only if it was one
at the processes: what they did then was no hang. What the watchdog itself collected is judged by
its own samples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from watchdog.evidence import Evidence, LogEvent
from watchdog.situation import lines
from watchdog.situation.pace import duration

MIN_COUNTS = 3
"""Fewer lines than this are no rate."""

MAX_MISSED = 2.5
"""A counter whose next line is overdue by more than this many of its intervals stands still."""

MIN_ALLOWED_S = 30.0
"""Less silence than this is none, however fast a counter is."""

NUM_RECENT = 20
"""So many of the last lines tell how often a log says something."""

MIN_TURN_S = 10.0
"""Engines that take turns answer at least this far apart; others answer together."""

_COUNTED = frozenset({"progress", "weight_received"})
_LOOKS = frozenset({"observed_at", "nfs_mount"})
"""What only somebody who looks at a shell makes appear."""

_STEPS = frozenset({"step", "iteration", "train step"})
_PARTS_OF_STEPS = frozenset({"micro_batch", "micro-batch"})


@dataclass(frozen=True)
class Counting:
    """A counter that went on to the end.

    Attributes:
        name: What it counts.
        first: Its first line of those that were kept.
        last: Its last line.
        interval_s: Usual time between two lines (s).
    """

    name: str
    first: LogEvent
    last: LogEvent
    interval_s: float

    @property
    def allowed_s(self) -> float:
        """How long it may say nothing and still be believed to go on (s)."""
        return max(MAX_MISSED * self.interval_s, MIN_ALLOWED_S)

    @property
    def is_of_steps(self) -> bool:
        """Whether it counts whole steps of the training, not the parts of one."""
        return self.name.lower() in _STEPS

    @property
    def is_of_training(self) -> bool:
        """Whether it counts what the trainer computes."""
        return self.is_of_steps or self.name.lower() in _PARTS_OF_STEPS

    @property
    def pace(self) -> str:
        """How far and how fast, one phrase."""
        fields = self.last.fields
        total = f" of {fields['total']}" if fields.get("total") else ""
        return (
            f"{self.name} {self.first.fields['done']} to {fields['done']}{total},"
            f" one every {duration(self.interval_s)}"
        )


def observed_at_s(evidence: Evidence) -> tuple[float, ...]:
    """Times at which somebody looked (s), ascending; empty where nothing tells."""
    remarks = [e.time_s for e in evidence.log_events if e.kind in _LOOKS]
    seen = _processes_seen_at_s(evidence)
    return tuple(sorted([*seen, *(t for t in remarks if t is not None)]))


def _processes_seen_at_s(evidence: Evidence) -> list[float]:
    stacks = [s.taken_at_s for p in evidence.processes for s in p.stacks]
    counters = [s.taken_at_s for p in evidence.processes for s in p.activity]
    return [t for t in (*stacks, *counters) if t is not None]


def said_at_s(evidence: Evidence) -> tuple[float, ...]:
    """Times of the lines that a job wrote by itself (s), ascending.

    What stands below the `date` of a look has its time, and is what the look found.
    """
    looks = {(e.file, e.time_s) for e in evidence.log_events if e.kind in _LOOKS}
    said = [e.time_s for e in evidence.log_events if (e.file, e.time_s) not in looks]
    return tuple(sorted(t for t in said if t is not None))


def usual_pause_s(evidence: Evidence) -> float:
    """Time that usually passes between two lines near the end of the logs (s), 0 for too few."""
    pauses = [b - a for a, b in pairwise(said_at_s(evidence)[-NUM_RECENT:]) if b > a]
    return median(pauses) if pauses else 0.0


def counting_on(evidence: Evidence) -> tuple[Counting, ...]:
    """The counters that counted on until the last look, and after every time-out."""
    looks, said = observed_at_s(evidence), said_at_s(evidence)
    if not looks or not said:
        return ()
    behind_s = 0.0 if _processes_seen_at_s(evidence) else said[-1] - looks[-1]
    return tuple(
        c for c in _counting_until(evidence, max(looks[-1], said[-1])) if behind_s <= c.allowed_s
    )


def counting_to_the_end(evidence: Evidence) -> tuple[Counting, ...]:
    """The counters that counted on to the end of the logs, whatever came after it."""
    said = said_at_s(evidence)
    return _counting_until(evidence, said[-1]) if said else ()


def _counting_until(evidence: Evidence, end_s: float) -> tuple[Counting, ...]:
    late = [
        e.time_s
        for e in evidence.log_events
        if e.time_s is not None and lines.TIME_OUT.search(e.text)
    ]
    found = []
    for series in (*_series(evidence.log_events), *_one_by_one(evidence.log_events)):
        times = [e.time_s for e in series if e.time_s is not None]
        interval = median(b - a for a, b in pairwise(times[-6:]))
        counter = Counting(series[-1].fields.get("name", ""), series[0], series[-1], interval)
        overdue = end_s - times[-1] > counter.allowed_s
        if not overdue and interval > 0 and all(time < times[-MIN_COUNTS] for time in late):
            found.append(counter)
    return tuple(found)


def _series(events: Iterable[LogEvent]) -> list[list[LogEvent]]:
    """The lines of each counter, oldest first, from the last time that it began anew."""
    found: dict[tuple[object, ...], list[LogEvent]] = {}
    for event in events:
        if event.kind not in _COUNTED or event.time_s is None:
            continue
        name, done = event.fields.get("name", ""), event.fields.get("done", "")
        if not done.isdigit():
            continue
        key = (event.kind, event.file, event.rank, event.engine, event.pid, name)
        series = found.setdefault(key, [])
        if series and int(done) < int(series[-1].fields["done"]):
            series.clear()
        series.append(event)
    return [s for s in found.values() if len(s) >= MIN_COUNTS and _grows(s)]


def _grows(series: list[LogEvent]) -> bool:
    return int(series[-1].fields["done"]) > int(series[0].fields["done"])


def _one_by_one(events: Iterable[LogEvent]) -> list[list[LogEvent]]:
    """Engines that take the same adapter one after another; none where all do at once.

    The same engine again is the next round.
    """
    round_: list[LogEvent] = []
    for event in events:
        fields = event.fields
        if event.kind != "engine_control" or event.time_s is None:
            continue
        if fields.get("op") != "load_lora" or fields.get("stage") != "end":
            continue
        if any((e.engine, e.pid) == (event.engine, event.pid) for e in round_):
            round_.clear()
        number = {"done": str(len(round_) + 1), "name": "engines with the adapter"}
        round_.append(replace(event, fields={**fields, **number}))
    times = [e.time_s for e in round_ if e.time_s is not None]
    steps = [b - a for a, b in pairwise(times)]
    if len(round_) < MIN_COUNTS or min(steps) < MIN_TURN_S or max(steps) > 2 * min(steps):
        return []
    return [round_]
