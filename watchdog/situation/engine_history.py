"""The control calls of one engine, in order, and what they left open."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from watchdog.evidence import LogEvent
from watchdog.situation import lines

_LASTING = ("pause", "unload_lora", "load_lora", "init_group", "update", "sleep", "wake")
"""Calls that log their begin and their end; a begin without an end is a call that hangs."""


_READS_PROMPTS = re.compile(r"prompt throughput: (?!0+\.0+\b)\d")

MIN_HELD_S = 120.0
"""A pause of a running update is over sooner than this."""

MIN_FROZEN_S = 90.0
"""Requests that run get a token sooner than this."""


@dataclass(frozen=True)
class Control:
    """One control call, or a part of it.

    Attributes:
        op: `pause`, `resume`, `flush`, `update`, `unload_lora` …
        stage: `begin`, `end`, `error` or `retry`.
        event: Its line.
    """

    op: str
    stage: str
    event: LogEvent


class EngineHistory:
    """What an engine was told to do, and what it did.

    Attributes:
        index: Index of the engine, `None` where its log names none.
        events: Its lines, in order.
    """

    def __init__(self, index: int | None, events: Iterable[LogEvent]) -> None:
        self.index = index
        self.events = tuple(events)

    @cached_property
    def controls(self) -> tuple[Control, ...]:
        """The control calls, oldest first."""
        return tuple(
            Control(event.fields.get("op", ""), event.fields.get("stage", "end"), event)
            for event in self.events
            if event.kind == "engine_control"
        )

    def last(self, *ops: str) -> Control | None:
        """The last call of one of the kinds."""
        return next((c for c in reversed(self.controls) if c.op in ops), None)

    @cached_property
    def open_call(self) -> Control | None:
        """The last call, if it began and no line tells of its end."""
        if not self.controls:
            return None
        last = self.controls[-1]
        return last if last.stage == "begin" and last.op in _LASTING else None

    @cached_property
    def refused_flush(self) -> tuple[Control, ...]:
        """The refused flushes since the last one that was granted."""
        found: list[Control] = []
        for control in reversed(self.controls):
            if control.op == "flush" and control.stage in ("retry", "error"):
                found.append(control)
            elif control.op == "flush" and control.stage == "end":
                break
        return tuple(reversed(found))

    @cached_property
    def is_paused(self) -> bool:
        """Whether its last pause was not followed by a resume."""
        last = self.last("pause", "resume")
        return last is not None and last.op == "pause" and last.stage != "error"

    @cached_property
    def is_asleep(self) -> bool:
        """Whether its last sleep was not followed by a wake."""
        last = self.last("sleep", "wake")
        return last is not None and last.op == "sleep" and last.stage != "error"

    @cached_property
    def holds_requests(self) -> tuple[LogEvent, ...]:
        """Lines that say that requests are held because generation is paused."""
        said = [e for e in self.events if e.kind == "requests_held" or lines.HOLDING.search(e.text)]
        return tuple(said or self._queued_since_pause())

    def _queued_since_pause(self) -> list[LogEvent]:
        """Statistics after the last pause with requests waiting and none running, for minutes."""
        pause = self.last("pause")
        if pause is None:
            return []
        later = [e for e in self.loads if self._is_after(e, pause.event)]
        held = [e for e in later if e.fields.get("queued", "0") != "0" and _runs_nothing(e)]
        times = [e.time_s for e in held if e.time_s is not None]
        lasts = len(times) >= 3 and times[-1] - times[0] > MIN_HELD_S
        if held and held[-1].fields.get("source") == "metrics":
            lasts = lasts or self._age_s(pause) > MIN_HELD_S
        return held if lasts and held[-1] is later[-1] else []

    def _is_after(self, event: LogEvent, other: LogEvent) -> bool:
        """By time where they stand in different files; a metrics page is as late as can be."""
        if event.file == other.file:
            return self.events.index(event) > self.events.index(other)
        if event.time_s is None or other.time_s is None:
            return event.fields.get("source") == "metrics"
        return event.time_s >= other.time_s

    def _age_s(self, control: Control) -> float:
        """Time from the call to the engine's last line (s), 0 where it is not told."""
        times = [e.time_s for e in self.events if e.time_s is not None]
        begun = control.event.time_s
        return max(times) - begun if times and begun is not None else 0.0

    @cached_property
    def frozen(self) -> tuple[LogEvent, ...]:
        """Its last statistics, where they show the same running requests without any token.

        For long: a long prompt, too, has its tokens counted. Empty otherwise.
        """
        if not self.loads:
            return ()
        last = self.loads[-1].fields.get("running", "0")
        found: list[LogEvent] = []
        for event in reversed(self.loads):
            reads = _READS_PROMPTS.search(event.text) is not None
            if event.fields.get("running") != last or not _runs_nothing(event) or reads:
                break
            found.append(event)
        times = [e.time_s for e in found if e.time_s is not None]
        lasts = len(times) > 1 and times[0] - times[-1] > MIN_FROZEN_S
        return tuple(reversed(found)) if lasts and last != "0" else ()

    @cached_property
    def failures(self) -> tuple[Control, ...]:
        """Control calls that were answered with an error and did not succeed later."""
        return tuple(
            c
            for i, c in enumerate(self.controls)
            if c.stage == "error"
            and not any(d.op == c.op and d.stage == "end" for d in self.controls[i + 1 :])
        )

    @cached_property
    def loads(self) -> tuple[LogEvent, ...]:
        """Its statistics lines."""
        return tuple(e for e in self.events if e.kind == "engine_load")

    def running(self) -> int | None:
        """Requests that its last statistics line shows as running."""
        for event in reversed(self.loads):
            if event.fields.get("running", "").isdigit():
                return int(event.fields["running"])
        return None

    def ran_when(self, op: str) -> int | None:
        """Requests running in the last statistics line before the last call of this kind."""
        control = self.last(op)
        if control is None:
            return None
        place = self.events.index(control.event)
        for event in reversed(self.events[:place]):
            if event.kind == "engine_load" and event.fields.get("running", "").isdigit():
                return int(event.fields["running"])
        return None

    @cached_property
    def generates(self) -> bool:
        """Whether its last statistics lines count tokens of running requests."""
        return counts_on(self.loads)


def _runs_nothing(load: LogEvent) -> bool:
    """Whether no request runs, or those that are called running get no token."""
    return load.fields.get("running") == "0" or load.fields.get("throughput") in (
        "0",
        "0.0",
        "0.00",
    )


def counts_on(loads: tuple[LogEvent, ...]) -> bool:
    """Whether the last two statistics lines show running requests and other token counts."""
    last = [e for e in loads if e.fields.get("running", "0") != "0"][-2:]
    if len(last) < 2 or last[-1] is not loads[-1]:
        return False
    if any(float(e.fields.get("throughput", "0") or 0) <= 0 for e in last):
        return False
    tokens = [e.fields.get("tokens") for e in last]
    return tokens[0] is None or tokens[0] != tokens[1]
