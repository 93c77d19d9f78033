"""Look at a hung job of this node from outside: find it, sample it twice, diagnose it."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from watchdog import capture as capture_package
from watchdog.attach import libraries
from watchdog.attach.command_lines import flags_of
from watchdog.attach.evidence_of_job import (
    evidence_of_job,
    gone_processes,
    peer_notes,
    process_of,
)
from watchdog.attach.open_logs import OpenLogs
from watchdog.capture import (
    SAMPLE_SOURCES,
    environment,
    kernel,
    python_stacks,
    sockets,
)
from watchdog.capture.target import Part, Source, Target, combined
from watchdog.diagnosis import diagnose
from watchdog.discovery.boxes import Box, boxes_of
from watchdog.discovery.connections import Connections, connections_of
from watchdog.discovery.jobs import Member, jobs_among
from watchdog.discovery.places import placed
from watchdog.discovery.processes import processes_of_this_host
from watchdog.discovery.selection import selected
from watchdog.evidence import Evidence, Gap, Process, StackSample
from watchdog.findings import Diagnosis
from watchdog.incident import suspects
from watchdog.verdict.ended import MEANWHILE

Capture = Callable[[Sequence[Target], Sequence[Source], float], dict[int, Part]]
Native = Callable[[Sequence[int]], dict[int, StackSample | Gap]]

_TELLS_HOW = re.compile(r"signal|exit status")
# What does not change while one looks.
_ONCE: tuple[Source, ...] = (environment, sockets, kernel, libraries)


def _capture(
    targets: Sequence[Target], sources: Sequence[Source], timeout_s: float
) -> dict[int, Part]:
    # Two cores at least, and py-spy is what costs.
    return capture_package.capture(
        targets, sources, timeout_s=timeout_s, at_once=max(4, os.cpu_count() or 1)
    )


def _native(pids: Sequence[int]) -> dict[int, StackSample | Gap]:
    return python_stacks.stacks(pids, native=True, timeout_s=3.0)


@dataclass(frozen=True)
class Wanted:
    """What to look at, and how.

    Attributes:
        pids: Processes that the job must contain; empty for any.
        match: Text that its name or a command line must contain; "" for any.
        interval_s: Time between the two samples (s).
        native: Whether the suspects' C and C++ frames are read, which pauses each for a moment.
    """

    pids: Collection[int] = ()
    match: str = ""
    interval_s: float = 3.0
    native: bool = True


@dataclass(frozen=True)
class Seams:
    """Everything that touches another process, so that a test can stand in for it.

    Attributes:
        capture: Reads processes: targets, sources, time for all (s).
        native: Stacks with native frames, by pid.
        sleep: Waits so many seconds.
        say: Tells the user how far it is.
    """

    capture: Capture = _capture
    native: Native = _native
    sleep: Callable[[float], None] = time.sleep
    say: Callable[[str], None] = field(default=lambda _: None)


def observe(wanted: Wanted, seams: Seams | None = None) -> tuple[Evidence, Diagnosis]:
    """Find the job, look at it twice, and say who holds it up.

    Stops nothing and changes nothing; with `native` the suspects, four at most, are paused for
    the fraction of a second that reading their native stacks takes.

    Raises:
        NoJobError: No job was found, or not the one that was asked for.
        SeveralJobsError: There are several; the message lists them.
    """
    return _Observation(wanted, seams or Seams()).outcome()


class _Observation:
    def __init__(self, wanted: Wanted, seams: Seams) -> None:
        self._wanted, self._seams = wanted, seams
        self._host = socket.gethostname()
        everything = processes_of_this_host()
        job = selected(jobs_among(everything), everything, wanted.pids, wanted.match)
        self._boxes: tuple[Box, ...] = boxes_of(everything, self._host)
        self._placed = placed(job, self._boxes, connections_of(job.pids), self._host)
        self._members = self._placed.job.members
        self._targets = [
            Target(m.seen.pid, m.key, _traceback_file(m, self._boxes)) for m in self._members
        ]
        self._notes = [f"attached to {job.name} on {self._host}: {len(job.members)} processes"]

    def outcome(self) -> tuple[Evidence, Diagnosis]:
        evidence = self._evidence()
        diagnosis = diagnose(evidence)
        if not self._wanted.native:
            return evidence, diagnosis
        began_s = time.monotonic()
        more = suspects.with_native_frames(
            evidence, diagnosis.verdict, wanted="auto", host=self._host, read=self._seams.native
        )
        if more is None:
            return evidence, diagnosis
        keys = [c.process for c in diagnosis.verdict.culprits if c.host == self._host][:4]
        them = "it" if len(keys) == 1 else "them"
        note = (
            f"native frames were read of {', '.join(keys)}, which paused {them} for less than"
            f" {time.monotonic() - began_s:.1f} s (--no-native avoids that)"
        )
        evidence = replace(more, notes=(*more.notes, note))
        return evidence, diagnose(evidence)

    def _evidence(self) -> Evidence:
        names = [m.key for m in self._placed.job.of("trainer", "engine")]
        self._seams.say(f"looking at {len(self._members)} processes ({', '.join(names[:6])} …)")
        first = self._look(SAMPLE_SOURCES)
        looked_s = time.monotonic()
        once = self._look(_ONCE)
        open_logs = OpenLogs(self._placed.job, self._host)
        logs = open_logs.read()
        left_s = looked_s + self._wanted.interval_s - time.monotonic()
        if left_s > 0:
            self._seams.say(f"second sample in {left_s:.0f} s")
            self._seams.sleep(left_s)
        between_s = time.monotonic() - looked_s
        second = self._look(SAMPLE_SOURCES)
        parts = {
            pid: _together(first[pid], once[pid], _told_as_ended(first[pid], second[pid]))
            for pid in first
        }
        if any(part.status_detail.startswith(MEANWHILE) for part in parts.values()):
            logs = open_logs.read()  # what they wrote last may say why
        boxes = self._boxes_now()
        processes = [process_of(m, parts[m.seen.pid], boxes, self._host) for m in self._members]
        processes += gone_processes(self._placed, boxes, self._host)
        self._notes.append(
            f"two samples {between_s:.1f} s apart; a wait that is legal for longer (a flush that is"
            " retried for 70 s, a cold compilation) looks the same: --interval 75 tells it apart"
        )
        connections = Connections({pid: part.sockets for pid, part in parts.items()})
        self._notes += peer_notes(self._placed.job, connections)
        flags = flags_of(self._placed.job)
        if logs.files:
            self._notes.append(f"ends of open logs were read: {', '.join(logs.files[:8])}")
        ordered = sorted(processes, key=_order)
        return evidence_of_job(self._placed, ordered, parts, logs, flags, self._notes)

    def _look(self, sources: Sequence[Source]) -> dict[int, Part]:
        return self._seams.capture(self._targets, sources, max(6.0, 0.5 * len(self._targets)))

    def _boxes_now(self) -> tuple[Box, ...]:
        """The same boxes, read again: what they say now belongs to the second sample."""
        if not self._boxes:
            return ()
        return boxes_of({m.seen.pid: m.seen for m in self._members}, self._host)


def _together(first: Part, once: Part, second: Part) -> Part:
    # Of what the first look could not have, the second one says why as well.
    return combined([replace(first, gaps=()), once, second])


def _told_as_ended(first: Part, second: Part) -> Part:
    """The second look; at a process that has ended since the first, with that said."""
    ended = ("dead", "zombie")
    if second.status not in ended or first.status in ended:
        return second
    # Nothing is known where the parent has taken the exit status, or keeps it from us.
    known = second.status_detail if _TELLS_HOW.search(second.status_detail) else ""
    return replace(second, status_detail=f"{MEANWHILE}: {known}" if known else MEANWHILE)


def _traceback_file(member: Member, boxes: Sequence[Box]) -> Path | None:
    for box in boxes:
        folder = str(box.reading.identity.get("run_folder") or "")
        path = Path(folder, "ranks", f"{box.path.stem}.faulthandler")
        if box.is_of(member.seen) and folder and path.exists():
            return path
    return None


def _order(process: Process) -> tuple[bool, int, bool, int, str]:
    return (
        process.role != "trainer",
        process.rank if process.rank is not None else 1 << 30,
        process.engine is None,
        process.engine or 0,
        "" if process.role == "engine" else process.key,
    )
