"""The ranks of a run, as their black boxes name them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from watchdog.blackbox.reading import BlackBoxReading, read_blackbox
from watchdog.capture import proc
from watchdog.errors import UnusableInputError
from watchdog.process_identity import started_ticks
from watchdog.run.incident_ids import slug
from watchdog.timing.stall_context import StallContext

COLLECTIVE = "collective"
"""The section's name when a collective on its own is late."""

SILENT_AFTER_S = 2.5
"""Without a heartbeat for so long (s), a watchdog thread does not run: it beats every second at
least, unless the GIL is held, or the process is stopped or gone."""


@dataclass(frozen=True)
class Member:
    """One rank of the job that left a black box where this process can read it.

    Attributes:
        rank: Global rank.
        pid: Its process id on its host.
        host: Its host.
        reading: What the box says.
        path: The box.
        is_local: Whether it runs, or ran, on this host.
    """

    rank: int
    pid: int
    host: str
    reading: BlackBoxReading
    path: Path
    is_local: bool

    @property
    def now_s(self) -> float:
        """The time now on the clock of its box (monotonic, s)."""
        if self.is_local:
            return time.monotonic()
        return time.time() - self.reading.clock_offset_s

    @property
    def heartbeat_age_s(self) -> float:
        """Time since its watchdog thread last ran (s)."""
        return self.now_s - self.reading.heartbeat_s

    @property
    def is_same_process(self) -> bool:
        """Whether its pid still is the process that wrote the box."""
        ticks = self.reading.identity.get("pid_started_ticks") or 0
        return self.is_local and bool(ticks) and started_ticks(self.pid) == ticks

    def why_gone(self) -> str:
        """How one sees that its process has ended; "" where it runs or cannot be seen."""
        if not self.is_local or self.is_same_process:
            return ""
        # In a container of its own it has another pid there; then its heart still beats.
        return "" if self.heartbeat_age_s < SILENT_AFTER_S else "its process is gone"

    def why_silent(self, section: str, index: int) -> str:
        """Why it will deliver nothing itself for this section; "" where it may."""
        if not self.is_local:
            return ""
        if not self.is_same_process:
            return self.why_gone()
        state = proc.state(self.pid)
        if state in ("T", "t"):
            return f"it is stopped ({state})"
        if self.heartbeat_age_s > SILENT_AFTER_S:
            # Before the first beat there is none to count from.
            since = f"for {self.heartbeat_age_s:.0f} s" if self.reading.heartbeat_s else "at all"
            return (
                f"its watchdog thread has not run {since}: "
                "a thread of it holds the GIL, the process gets no CPU, or that thread has died"
            )
        return self._why_elsewhere(section, index)

    def _why_elsewhere(self, section: str, index: int) -> str:
        place = self.reading
        if section == COLLECTIVE:
            current = place.collective
            waits = current is not None and current.ended_s == 0
            return "" if waits else "it is in no collective"
        # On another node the section is known by the name of its incident.
        if (slug(place.section), place.section_index) == (slug(section), index):
            return ""
        return f"it is not in {section} {index}"


def members(folders: Iterable[Path], host: str) -> dict[int, Member]:
    """The ranks whose box can be read, by rank; unreadable boxes are left out.

    Args:
        folders: Where boxes or links to them lie; may be missing.
        host: Name of this host, as identities give it.
    """
    found: dict[int, Member] = {}
    for path in [path for folder in folders for path in sorted(folder.glob("*.blackbox"))]:
        one = _member(path, host)
        # A rank that was started anew has two boxes: the one of a process that runs counts.
        if one is not None and (one.rank not in found or not found[one.rank].is_same_process):
            found[one.rank] = one
    return dict(sorted(found.items()))


def members_of(context: StallContext) -> dict[int, Member]:
    """The ranks of the run in which this stall happened."""
    folders = [context.run_folder / "ranks"]
    if context.blackbox is not None:
        # Boxes lie in shared memory, where they are found without their links too.
        folders.append(context.blackbox.parent)
    return members(folders, context.identity.host)


def _member(path: Path, host: str) -> Member | None:
    try:
        reading = read_blackbox(path)
    except UnusableInputError:
        return None
    rank, pid = reading.rank, reading.identity.get("pid")
    if rank is None or not isinstance(pid, int) or reading.identity.get("role") != "trainer":
        return None
    theirs = str(reading.identity.get("host", ""))
    return Member(rank, pid, theirs, reading, path, theirs == host)
