"""One object with cached views; it adds nothing to the evidence and forgets nothing of it."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from watchdog.evidence import Evidence, Flag, LogEvent, Process
from watchdog.situation import lines
from watchdog.situation.counting import (
    MAX_MISSED,
    MIN_ALLOWED_S,
    MIN_COUNTS,
    Counting,
    counting_on,
    observed_at_s,
)
from watchdog.situation.engine_history import EngineHistory, counts_on
from watchdog.situation.logs import Logs
from watchdog.situation.movement import Movement, movement
from watchdog.situation.queued_calls import QueuedCall, queued_calls
from watchdog.situation.switches import Switches
from watchdog.waits import Wait, wait_of
from watchdog.waits.patterns import WaitKind

WAITING_TOGETHER: frozenset[WaitKind] = frozenset({"collective", "rendezvous", "store"})
"""Kinds of wait that end when the peers come."""


_COUNTED = frozenset({"engine_load", "http_access", "progress", "gpu_utilization", "ray_idle"})
_SAYS_NOTHING = frozenset(
    {
        "observed_at",
        "remark_duration",
        "gpu_spinning",
        "http_access",
        "shm_broadcast_notice",
        "ray_task",
        "ray_idle",
        "gpu_utilization",
        "nfs_mount",
        "lock_file",
    }
)
_ENGINE_KINDS = ("engine_control", "engine_load", "requests_held")


class Situation:
    """The evidence, looked at from the questions that verdict and rules ask.

    Attributes:
        evidence: What it was made from.
        memo: What later stages worked out once, e.g. the verdict.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.memo: dict[str, Any] = {}

    # -- processes ------------------------------------------------------------------------

    @cached_property
    def processes(self) -> dict[str, Process]:
        """All processes by key."""
        return {process.key: process for process in self.evidence.processes}

    @cached_property
    def trainers(self) -> tuple[Process, ...]:
        """Trainer processes, by rank where it is known."""
        found = [p for p in self.evidence.processes if p.role == "trainer"]
        return tuple(sorted(found, key=lambda p: (p.rank is None, p.rank or 0)))

    @cached_property
    def engines(self) -> tuple[Process, ...]:
        """Engines and their workers."""
        return tuple(p for p in self.evidence.processes if p.role in ("engine", "engine_worker"))

    @cached_property
    def drivers(self) -> tuple[Process, ...]:
        """Processes that tell trainers and engines what to do."""
        return tuple(p for p in self.evidence.processes if p.role == "driver")

    @cached_property
    def world_size(self) -> int | None:
        """Trainer ranks that should take part, as told or as the flags say."""
        if self.evidence.world_size is not None:
            return self.evidence.world_size
        nodes, per_node = (
            self.switches.number("actor_num_nodes"),
            self.switches.number("actor_num_gpus_per_node"),
        )
        return int(nodes * per_node) if nodes and per_node else None

    def trainer(self, rank: int) -> Process | None:
        """The trainer of this rank, `None` where nothing is known of it."""
        return next((p for p in self.trainers if p.rank == rank), None)

    def engine_indices(self) -> tuple[int, ...]:
        """Indices of all engines that a process or a log line names, ascending."""
        found = {p.engine for p in self.engines} | {e.engine for e in self.evidence.log_events}
        return tuple(sorted(index for index in found if index is not None))

    def with_stack(self, process: Process) -> bool:
        """Whether any stack of it was read."""
        return any(thread.frames for sample in process.stacks for thread in sample.threads)

    # -- waits ----------------------------------------------------------------------------

    @cached_property
    def waits(self) -> dict[str, Wait]:
        """What every process does, by key."""
        return {process.key: wait_of(process) for process in self.evidence.processes}

    def wait(self, process: Process) -> Wait:
        """What this process does."""
        return self.waits[process.key]

    def doing(
        self, *kinds: WaitKind, among: tuple[Process, ...] | None = None
    ) -> tuple[Process, ...]:
        """The processes (default: trainers) whose wait is of one of the kinds."""
        chosen = self.trainers if among is None else among
        return tuple(p for p in chosen if self.wait(p).kind in kinds)

    def at(self, expression: str, among: tuple[Process, ...] | None = None) -> tuple[Process, ...]:
        """The processes (default: trainers) with a telling or own frame that matches."""
        chosen = self.trainers if among is None else among
        return tuple(p for p in chosen if self.wait(p).passes(expression))

    @cached_property
    def movements(self) -> dict[str, Movement]:
        """Whether every process moves, by key."""
        return {p.key: self._movement(p) for p in self.evidence.processes}

    @cached_property
    def _loads_by_pid(self) -> dict[int | None, tuple[LogEvent, ...]]:
        found: dict[int | None, list[LogEvent]] = {}
        for event in self.evidence.log_events:
            if event.kind == "engine_load" and event.pid is not None:
                found.setdefault(event.pid, []).append(event)
        return {pid: tuple(events) for pid, events in found.items()}

    def _movement(self, process: Process) -> Movement:
        seen = movement(process, self.wait(process).kind)
        if seen.moving or self.wait(process).kind in (
            "paused_memory",
            "stopped",
            "dead",
            "gil_held",
        ):
            return seen
        loads = self._loads_by_pid.get(process.pid, ())
        if process.pid is None and process.role == "engine":
            loads = self._loads_until_the_look(process.engine)
        if loads and counts_on(loads):
            return Movement(True, f"its engine generates: {loads[-1].text[:160]}")
        return seen

    def _loads_until_the_look(self, engine: int | None) -> tuple[LogEvent, ...]:
        """Statistics of an engine without a process, if they go on to the last look."""
        events = self.logs.of_engine(engine) if engine is not None else ()
        loads = tuple(e for e in events if e.kind == "engine_load" and e.time_s is not None)
        if len(loads) < MIN_COUNTS or not self.observed_at_s:
            return ()
        times = [e.time_s for e in loads[-MIN_COUNTS:] if e.time_s is not None]
        allowed_s = max(MAX_MISSED * (times[-1] - times[0]) / (MIN_COUNTS - 1), MIN_ALLOWED_S)
        return loads if times[-1] > self.observed_at_s[-1] - allowed_s else ()

    def moving(self, process: Process) -> bool | None:
        """Whether two looks at it differ; `None` with one look."""
        return self.movements[process.key].moving

    # -- logs, flags, environment -----------------------------------------------------------

    @cached_property
    def logs(self) -> Logs:
        """The log lines, by meaning and by time."""
        return Logs(self.evidence)

    def log(self, expression: str | re.Pattern[str]) -> tuple[LogEvent, ...]:
        """The log lines whose text matches."""
        wanted = re.compile(expression) if isinstance(expression, str) else expression
        return lines.matching(self._told, wanted)

    @cached_property
    def _told(self) -> tuple[LogEvent, ...]:
        """The lines whose text says more than their fields."""
        return tuple(e for e in self.evidence.log_events if e.kind not in _COUNTED)

    @cached_property
    def switches(self) -> Switches:
        """Flags, environment and versions."""
        return Switches(self.evidence)

    def flag(self, name: str) -> Flag | None:
        """The flag of this name (dots or underscores), `None` where it was not given."""
        return self.switches.flag(name)

    @cached_property
    def engine_histories(self) -> tuple[EngineHistory, ...]:
        """The control calls of every engine that left lines, by index."""
        indices = sorted({e.engine for e in self.evidence.log_events if e.engine is not None})
        found = [EngineHistory(index, self.logs.of_engine(index)) for index in indices]
        stray = [
            e for e in self.evidence.log_events if e.engine is None and e.kind in _ENGINE_KINDS
        ]
        only = self.engine_indices()
        if stray and len(only) == 1:
            own = [*self.logs.of_engine(only[0]), *stray]
            found = [EngineHistory(only[0], sorted(own, key=self.logs.order))]
        elif stray:
            found.append(EngineHistory(None, stray))
        return tuple(found)

    @cached_property
    def counting(self) -> tuple[Counting, ...]:
        """The counters in files that counted on until somebody looked."""
        if self.evidence.origin != "files" or self.evidence.stall is not None:
            return ()
        return counting_on(self.evidence)

    @cached_property
    def queued_calls(self) -> tuple[QueuedCall, ...]:
        """Calls of Ray actors that wait behind a running one."""
        return queued_calls(self.evidence, self.waits)

    @cached_property
    def observed_at_s(self) -> tuple[float, ...]:
        """Times at which somebody looked (s), ascending; empty where nothing tells."""
        return observed_at_s(self.evidence)

    @cached_property
    def remarks(self) -> tuple[LogEvent, ...]:
        """What people wrote beside the files on how long it stands still."""
        return tuple(e for e in self.evidence.log_events if e.kind == "remark_duration")

    @cached_property
    def silent_s(self) -> float | None:
        """Time from the last line of any log to the last look (s); `None` where nothing tells."""
        looks = self.observed_at_s
        said = [
            e.time_s
            for e in self.evidence.log_events
            if e.time_s is not None
            and e.kind not in _SAYS_NOTHING
            and not (e.kind == "engine_load" and e.fields.get("running") == "0")
            and e.fields.get("time_of") != "the heading"
        ]
        return looks[-1] - max(said) if looks and said else None

    # -- lifecycle ------------------------------------------------------------------------

    @cached_property
    def sleeps(self) -> bool | None:
        """Whether the trainer sleeps (memory paused); `None` where nothing tells.

        The memory ledger knows; else the last lifecycle line, or the offload flag together with
        a sync that runs.
        """
        regions = [region for p in self.trainers for region in p.memory]
        if regions:
            return any(region.residency != "resident" for region in regions)
        return self.logs.trainer_sleeps

    @cached_property
    def first_sync(self) -> bool | None:
        """Whether no sync ended before this one; `None` where nothing tells."""
        indices = [
            p.position.section_index for p in self.trainers if p.position and p.position.section
        ]
        if indices:
            return max(indices) <= 1
        return self.logs.first_sync
