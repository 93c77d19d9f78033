"""What was seen of a job's processes, as one evidence."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from watchdog.attach.open_logs import LogsRead
from watchdog.blackbox.reading import with_position
from watchdog.capture.target import Part
from watchdog.discovery.boxes import Box
from watchdog.discovery.connections import Connections
from watchdog.discovery.jobs import Job, Member
from watchdog.discovery.places import Placed
from watchdog.discovery.run_processes import as_process
from watchdog.evidence import Evidence, Flag, Process
from watchdog.intake.assemble import evidence_of, framework_of

_MAX_PEERS = 24


def process_of(member: Member, part: Part, boxes: Sequence[Box], host: str) -> Process:
    """One process: who it is, what was captured, and where its black box says it is."""
    process = as_process(member, part, host)
    box = next((box for box in boxes if box.is_of(member.seen)), None)
    return process if box is None else with_position(process, box.reading, time.monotonic())


def gone_processes(placed: Placed, boxes: Sequence[Box], host: str) -> list[Process]:
    """Ranks of this host that have no process any more.

    By their black boxes, or by their siblings, which were told how many there are.
    """
    present = {member.rank for member in placed.job.of("trainer")}
    runs = {box.run for box in boxes for m in placed.job.members if box.is_of(m.seen)} - {""}
    found: dict[int, Process] = {}
    for box in boxes:
        rank = box.reading.rank
        if rank is None or rank in present or box.run not in runs:
            continue
        if box.reading.identity.get("role") != "trainer":
            continue
        ended = "the process ended on its own" if box.reading.exited else "the process is gone"
        process = _gone(rank, box.pid or None, host, ended, "its black box")
        found[rank] = with_position(process, box.reading, time.monotonic())
    for rank in placed.absent:
        why = f"no process has this rank, and {placed.how_absent}"
        found.setdefault(rank, _gone(rank, None, host, "no process has this rank", why))
    return [found[rank] for rank in sorted(found)]


def _gone(rank: int, pid: int | None, host: str, detail: str, by: str) -> Process:
    return Process(
        key=f"rank {rank}", role="trainer", rank=rank, pid=pid, host=host, status="dead",
        status_detail=detail, identified_by=by,
    )  # fmt: skip


def evidence_of_job(
    placed: Placed,
    processes: Sequence[Process],
    parts: Mapping[int, Part],
    logs: LogsRead,
    flags: Sequence[Flag],
    notes: Sequence[str],
) -> Evidence:
    """All of it together.

    Args:
        placed: The job.
        processes: Its processes, in the order of the report.
        parts: What was captured, by pid.
        logs: What the open logs say.
        flags: Of the command lines; arguments that logs print come after them.
        notes: How things were found out.
    """
    told = evidence_of(logs.parts)
    known = {flag.name for flag in flags}
    events = [event for part in parts.values() for event in part.log_events]
    versions = next((p.versions for p in processes if p.versions), {})
    evidence = Evidence(
        origin="attach",
        processes=tuple(_with_own_versions(p, versions) for p in processes),
        world_size=placed.world_size,
        collected_at_s=time.time(),
        log_events=(*told.log_events, *dict.fromkeys(events)),
        flags=(*flags, *(flag for flag in told.flags if flag.name not in known)),
        versions={**told.versions, **versions},
        gaps=(*logs.gaps, *told.gaps),
        notes=tuple(notes),
    )
    return replace(evidence, framework=framework_of(evidence))


def _with_own_versions(process: Process, job: Mapping[str, str]) -> Process:
    own = {name: v for name, v in process.versions.items() if job.get(name) != v}
    return replace(process, versions=own)


def peer_notes(job: Job, connections: Connections) -> list[str]:
    """Who is connected to whom within the job, one sentence a process, a bounded number."""
    names = {member.seen.pid: member.key for member in job.members}
    notes = []
    for member in job.members:
        pid = member.seen.pid
        peers = [names[peer] for peer in sorted(connections.peers(pid)) if peer in names]
        own = connections.by_pid.get(pid, ())
        num_open = sum(one.state == "ESTABLISHED" for one in own)
        if num_open:
            with_whom = ", ".join(peers) if peers else "nobody of this job on this host"
            notes.append(f"{member.key}: {num_open} open connections, to {with_whom}")
    return notes[:_MAX_PEERS]
