"""The job's other processes of this host, looked at twice: engines, their workers, launchers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from watchdog.capture import SAMPLE_SOURCES, environment, process_state, python_stacks, sockets
from watchdog.capture.target import Part, Source, Target, combined
from watchdog.discovery.jobs import Member
from watchdog.discovery.run_processes import as_process, processes_of_run
from watchdog.evidence import Evidence, Gap
from watchdog.incident.members import members_of
from watchdog.sentinel.run_roster import FILE
from watchdog.timing.stall_context import StallContext

Capture = Callable[[Sequence[Target], Sequence[Source], float], dict[int, Part]]

_SOURCES: tuple[Source, ...] = (python_stacks, process_state, environment, sockets)
_BETWEEN_SAMPLES_S = 1.0


@dataclass
class Neighbours:
    """What the leader sees of them.

    Attributes:
        context: The stall.
        capture: Reads processes of this host: targets, sources, time for all (s).
        find: Finds them: run, process ids of the ranks, host, roster of the sentinel.
    """

    context: StallContext
    capture: Capture
    find: Callable[[str, list[int], str, str], tuple[Member, ...]] = processes_of_run
    _found: tuple[Member, ...] = ()
    _first: dict[int, Part] = field(default_factory=dict)
    _looked_at_s: float = 0.0
    _gaps: tuple[Gap, ...] = ()

    def look(self) -> None:
        """Find them, and take the first, cheap sample. Never raises."""
        self._find()
        self._first = self._captured(SAMPLE_SOURCES, 3.0)
        self._looked_at_s = time.monotonic()

    def added_to(self, evidence: Evidence, *, sleep: Callable[[float], None]) -> Evidence:
        """The evidence with them in it; the second sample is taken now."""
        if self._found:
            sleep(max(0.0, self._looked_at_s + _BETWEEN_SAMPLES_S - time.monotonic()))
        second = self._captured(_SOURCES, 4.0)
        host = self.context.identity.host
        present = {process.key for process in evidence.processes}
        added = []
        for one in self._found:
            parts = [
                replace(self._first.get(one.seen.pid, Part()), gaps=()),
                second.get(one.seen.pid, Part()),
            ]
            process = as_process(one, combined(parts), host)
            if process.key not in present:
                added.append(process)
        return replace(
            evidence,
            processes=(*evidence.processes, *added),
            gaps=(*evidence.gaps, *self._gaps),
        )

    def engines(self) -> list[tuple[int, int]]:
        """Process id and start time (ticks) of engines and their workers."""
        if not self._found:
            self._find()
        return [
            (one.seen.pid, one.seen.ticks) for one in self._found if one.role.startswith("engine")
        ]

    def _find(self) -> None:
        host = self.context.identity.host
        ranks = [one.pid for one in members_of(self.context).values() if one.is_local]
        try:
            roster = "" if self.context.blackbox is None else self.context.blackbox.parent / FILE
            self._found = self.find(self.context.run_folder.name, ranks, host, str(roster))
        except Exception as error:
            self._gaps = (Gap("the job's other processes", f"{type(error).__name__}: {error}"),)

    def _captured(self, sources: Sequence[Source], timeout_s: float) -> dict[int, Part]:
        if not self._found:
            return {}
        targets = [Target(one.seen.pid, one.key) for one in self._found]
        return self.capture(targets, sources, timeout_s)
