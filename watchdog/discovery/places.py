"""Ranks and engine numbers of a job's processes, and how each was found out.

What a process was started with shows in `/proc/<pid>/environ`; what it set later does not. Of a
Ray actor, which sets its rank in its constructor, other traces tell: its black box, the name of
its actor, its folder for offloaded memory, the store that rank 0 owns, and the order of start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from watchdog.discovery.boxes import Box
from watchdog.discovery.connections import Connections
from watchdog.discovery.engines import numbered_engines
from watchdog.discovery.jobs import Job, Member
from watchdog.discovery.titles import actor_index

_RANK_IN_PATH = re.compile(r"rank[_-]?(\d{1,6})(?!\d)", re.IGNORECASE)
_NODES = re.compile(r"--actor-num-nodes[ =](\d{1,6})\b")
_PER_NODE = re.compile(r"--actor-num-gpus-per-node[ =](\d{1,6})\b")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Placed:
    """A job with names for its processes.

    Attributes:
        job: Its processes, each with a key of its own.
        world_size: Trainer ranks that should take part, `None` where nothing tells.
        absent: Ranks that belong on this host and have no process, ascending.
        how_absent: How one sees that they do.
    """

    job: Job
    world_size: int | None = None
    absent: tuple[int, ...] = ()
    how_absent: str = ""


def placed(job: Job, boxes: Sequence[Box], connections: Connections, host: str) -> Placed:
    """Give every process of a job its rank or its engine's number.

    Args:
        job: The job.
        boxes: Black boxes of this host.
        connections: Of the job's processes.
        host: Name of this host, for what has no number.
    """
    trainers = [_known_rank(member, boxes) for member in job.of("trainer")]
    size = world_size(job, boxes)
    trainers = _guessed_ranks(trainers, size, job, connections)
    trainers.sort(key=lambda member: (member.rank is None, member.rank or 0, member.seen.pid))
    engines = numbered_engines(job, connections)
    rest = job.of("driver", "launcher")
    others = [m for m in job.of("other") if m.seen.pid not in {e.seen.pid for e in engines}]
    named = with_keys([*trainers, *engines, *rest, *others], host)
    absent, why = _absent(trainers, size)
    return Placed(replace(job, members=tuple(named)), size, absent, why)


def world_size(job: Job, boxes: Sequence[Box]) -> int | None:
    """How many trainer ranks should take part; `None` where nothing tells."""
    for member in job.of("trainer"):
        for box in boxes:
            size = box.reading.identity.get("world_size")
            if box.is_of(member.seen) and isinstance(size, int):
                return size
    for name in ("WORLD_SIZE", "SLURM_NTASKS"):
        told = [member.seen.variable(name) for member in job.of("trainer")]
        if sizes := [int(text) for text in told if text.isdigit()]:
            return max(sizes)
    for member in job.of("driver"):
        nodes, per_node = (kind.search(member.seen.line) for kind in (_NODES, _PER_NODE))
        if per_node:
            return int(per_node[1]) * (int(nodes[1]) if nodes else 1)
    return None


def _known_rank(member: Member, boxes: Sequence[Box]) -> Member:
    one = member.seen
    for box in boxes:
        if box.is_of(one) and box.reading.rank is not None:
            return _ranked(member, box.reading.rank, "its black box")
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        if one.variable(name).isdigit():
            return _ranked(member, int(one.variable(name)), f"{name} in its environment")
    if (index := actor_index(one.line)) is not None:
        return _ranked(member, index, "the name of its actor")
    match = _RANK_IN_PATH.search(one.variable("TMS_DISK_BACKUP_DIR"))
    if match:
        return _ranked(member, int(match[1]), "TMS_DISK_BACKUP_DIR in its environment")
    return member


def _ranked(member: Member, rank: int, by: str) -> Member:
    words = (by,) if by.startswith("RANK") else (*member.by, f"rank by {by}")
    return replace(member, rank=rank, by=words)


def _guessed_ranks(
    trainers: Sequence[Member], size: int | None, job: Job, connections: Connections
) -> list[Member]:
    """Number those that nothing names, where all ranks must be here, by their order of start.

    Where part of the job may be elsewhere, the order says nothing, and they stay without.
    """
    unknown = [member for member in trainers if member.rank is None]
    known = [member for member in trainers if member.rank is not None]
    if not unknown:
        return known
    owner = _store_owner(trainers, connections)
    all_here = size == len(trainers) or (size is None and (owner is not None or not _is_ray(job)))
    if size is not None and size > len(trainers):
        local = [m.seen.variable("LOCAL_WORLD_SIZE") for m in trainers]
        all_here = any(text == str(size) for text in local) or _on_loopback(trainers)
    if not all_here:
        why = "rank unknown: parts of the job may be on other hosts"
        return [*known, *(replace(member, by=(*member.by, why)) for member in unknown)]
    # Zombies keep neither name nor sockets: what is left over is theirs.
    unknown.sort(key=lambda m: (m.seen.state == "Z", m.seen.pid != owner, m.seen.ticks, m.seen.pid))
    taken = {member.rank for member in known}
    free = [rank for rank in range(max(size or 0, len(trainers))) if rank not in taken]
    numbered = []
    for member, rank in zip(unknown, free, strict=False):
        by = "rank guessed by the order of start"
        if len(unknown) == len(free) == 1:
            by = "the only rank without a process"
        elif rank == 0 and member.seen.pid == owner:
            by = "rank 0 owns the store that the others are connected to"
        numbered.append(replace(member, rank=rank, by=(*member.by, by)))
    return [*known, *numbered]


def _is_ray(job: Job) -> bool:
    return any(member.seen.line.startswith("ray::") for member in job.members)


def _store_owner(trainers: Sequence[Member], connections: Connections) -> int | None:
    """The one trainer whose listening port all others are connected to."""
    pids = {member.seen.pid for member in trainers if member.seen.state != "Z"}
    if len(pids) < 2:
        return None
    found = [
        pid for pid in pids if all(pid in connections.servers(other) for other in pids - {pid})
    ]
    return found[0] if len(found) == 1 else None


def _absent(trainers: Iterable[Member], size: int | None) -> tuple[tuple[int, ...], str]:
    """Ranks that must be on this host, by what their siblings were told, and are not."""
    trainers = list(trainers)
    present = {member.rank for member in trainers}
    if any(member.rank is None for member in trainers) or not trainers:
        return (), ""
    first = trainers[0].seen
    local, group = first.variable("LOCAL_WORLD_SIZE"), first.variable("GROUP_RANK")
    if local.isdigit() and group.isdigit():
        start = int(group) * int(local)
        expected = set(range(start, start + int(local)))
        return tuple(sorted(expected - present)), f"LOCAL_WORLD_SIZE is {local}"
    if size is not None and _on_loopback(trainers):
        return tuple(sorted(set(range(size)) - present)), "MASTER_ADDR is this host's loopback"
    return (), ""


def _on_loopback(trainers: Iterable[Member]) -> bool:
    found = [member.seen.variable("MASTER_ADDR") for member in trainers]
    known = [address for address in found if address]
    return bool(known) and all(address in _LOOPBACK for address in known)


def with_keys(members: Iterable[Member], host: str) -> list[Member]:
    """The members with a key each, all different.

    Args:
        members: With rank or number of engine, where they have one.
        host: Name of this host, for what has none.
    """
    taken: set[str] = set()
    named = []
    for member in members:
        key = _key(member, host)
        if key in taken and member.role == "engine":
            key += " server"
        if key in taken:
            key = f"{key} (pid {member.seen.pid})"
        taken.add(key)
        named.append(replace(member, key=key))
    return named


def _key(member: Member, host: str) -> str:
    if member.role == "trainer" and member.rank is not None:
        return f"rank {member.rank}"
    if member.engine is not None and member.role in ("engine", "engine_worker"):
        words = [f"engine {member.engine}"]
        if member.replica is not None:
            words.append(f"replica {member.replica}")
        if member.role == "engine_worker":
            words.append(f"worker {member.worker}")
        return " ".join(words)
    if member.role in ("driver", "launcher"):
        return member.role
    return f"{host}:{member.seen.pid}"
