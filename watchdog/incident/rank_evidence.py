"""The evidence of one rank: what capture found, with its identity and its black box."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

from watchdog.blackbox.reading import BlackBoxReading, read_blackbox, with_position
from watchdog.capture.target import Part
from watchdog.errors import UnusableInputError
from watchdog.evidence import Evidence, Gap, Process, Role, Stall
from watchdog.incident.members import Member
from watchdog.timing.stall_context import StallContext


def of_this_process(context: StallContext, part: Part) -> Evidence:
    """What this rank has to say of its stall, alone."""
    identity = context.identity
    process = Process(
        key=key_of(identity.rank, identity.host, identity.pid),
        role=cast(Role, identity.role),
        rank=identity.rank,
        pid=identity.pid,
        host=identity.host,
        identified_by="the watchdog in the process itself"
        if identity.pid == os.getpid()
        else "its black box; seen by the sentinel, because no rank of its node could speak",
    )
    reading, gaps = _own_box(context.blackbox)
    process = _filled(process, part, reading, time.monotonic())
    noticed_by = () if identity.rank is None else (identity.rank,)
    return Evidence(
        origin="watchdog",
        processes=(replace(process, gaps=(*process.gaps, *gaps)),),
        world_size=identity.world_size,
        framework=identity.framework,
        collected_at_s=time.time(),
        stall=Stall(
            context.section,
            context.waited_s,
            context.deadline_s,
            context.deadline_reason,
            noticed_by,
        ),
        log_events=part.log_events,
        flags=part.flags,
        versions=part.versions,
    )


def of_silent_member(member: Member, part: Part, why: str) -> Process:
    """A rank that did not speak for itself, as seen from outside."""
    process = Process(
        key=key_of(member.rank, member.host, member.pid),
        role=cast(Role, member.reading.identity.get("role") or "trainer"),
        rank=member.rank,
        pid=member.pid,
        host=member.host,
        identified_by=f"its black box; looked at from outside, because {why}",
    )
    process = _filled(process, part, member.reading, member.now_s)
    gap = Gap(f"rank {member.rank}'s own evidence", why)
    return replace(process, gaps=(gap, *process.gaps))


def key_of(rank: int | None, host: str, pid: int) -> str:
    """The process's key in the evidence."""
    return f"{host}:{pid}" if rank is None else f"rank {rank}"


def _filled(process: Process, part: Part, reading: BlackBoxReading | None, now_s: float) -> Process:
    process = replace(
        process,
        command=part.command,
        status=part.status,
        status_detail=part.status_detail,
        stacks=part.stacks,
        activity=part.activity,
        memory=part.memory,
        environment=part.environment,
        sockets=part.sockets,
        gaps=part.gaps,
    )
    return process if reading is None else with_position(process, reading, now_s)


def _own_box(path: Path | None) -> tuple[BlackBoxReading | None, tuple[Gap, ...]]:
    if path is None:
        return None, (Gap("position by the black box", "this rank has no file to keep one in"),)
    try:
        return read_blackbox(path), ()
    except UnusableInputError as error:
        return None, (Gap("position by the black box", str(error)),)
