"""Processes of this host that belong to a run and are no rank of it: engines, launchers, loaders.

They are found by the name of the run in their environment, which children inherit, and by the
process tree. The ranks themselves are known: each has a black box.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from watchdog.capture.target import Part
from watchdog.discovery.connections import Connections, connections_of
from watchdog.discovery.engines import numbered_engines
from watchdog.discovery.jobs import Job, Member
from watchdog.discovery.places import with_keys
from watchdog.discovery.processes import Seen, ancestors, processes_of_this_host
from watchdog.discovery.roles import is_watcher, is_wrapper, parts
from watchdog.evidence import Process, Role
from watchdog.masking import mask_argv
from watchdog.process_identity import RUN_VARIABLE
from watchdog.sentinel.run_roster import Noted, missed, read_roster

_MAX_PROCESSES = 64
_KEPT: tuple[Role, ...] = ("engine", "engine_worker", "driver")


def processes_of_run(
    run: str, ranks: Iterable[int], host: str, roster: str = ""
) -> tuple[Member, ...]:
    """Find them; engines first, each with its workers, then the rest.

    Args:
        run: Name of the run, as `MILES_WATCHDOG_RUN` gives it to all processes of the job.
        ranks: Process ids of the trainer ranks, which are left out, and what belongs to them
            is not.
        host: Name of this host, for the keys.
        roster: File in which the sentinel notes the engines of the run, for what one was that
            has ended; "" for none.
    """
    everything = processes_of_this_host(with_self=True)
    noted = read_roster(roster) if roster else ()
    everything = with_ended(everything, noted, time.monotonic())
    return members_of_run(everything, run, set(ranks), host)


def with_ended(
    everything: Mapping[int, Seen], noted: Iterable[Noted], now_s: float
) -> dict[int, Seen]:
    """The processes: zombies with the command lines they had, and engines that are missed.

    A number that another process has got meanwhile is that other process's.

    Args:
        everything: The processes of this host.
        noted: What the sentinel noted.
        now_s: Monotonic time (s).
    """
    noted = tuple(noted)
    found = dict(everything)
    for one in noted:
        now = found.get(one.pid)
        if now is not None and now.state == "Z" and now.ticks == one.ticks:
            found[one.pid] = replace(now, words=one.words)
    for one in missed(noted, now_s):
        found.setdefault(one.pid, Seen(one.pid, one.parent, one.ticks, "Z", words=one.words))
    return dict(sorted(found.items()))


def members_of_run(
    everything: Mapping[int, Seen],
    run: str,
    ranks: Collection[int],
    host: str,
    connect: Callable[[Iterable[int]], Connections] = connections_of,
) -> tuple[Member, ...]:
    """The same among processes that were listed before.

    Args:
        everything: The processes of this host.
        run: Name of the run.
        ranks: Process ids of its ranks.
        host: Name of this host.
        connect: Reads the connections of processes, by pid.
    """
    marked = {pid for pid, one in everything.items() if one.variable(RUN_VARIABLE) == run}
    marked |= {pid for pid, one in everything.items() if one.state == "Z" and one.words}
    roots = marked | set(ranks)
    belonging = {pid for pid in everything if roots & {pid, *ancestors(everything, pid)}}
    ours = {pid for pid in belonging if is_watcher(everything[pid])}
    # A child of the watchdog's own children is not the job's either.
    hidden = {pid for pid in belonging if ours & {pid, *ancestors(everything, pid)}}
    above = {pid for rank in ranks for pid in ancestors(everything, rank)}
    known = parts(everything)
    members = []
    for pid in sorted(belonging - hidden - set(ranks)):
        part = known.get(pid)
        if part is None and is_wrapper(everything[pid]):
            continue
        role: Role = part.role if part is not None and part.role in _KEPT else "other"
        by = ("environment and process tree", *((part.by,) if part and role != "other" else ()))
        if pid in above and role == "other":
            role = "launcher"
        members.append(Member(everything[pid], role, by))
    return _named(members, everything, ranks, host, connect)[:_MAX_PROCESSES]


def as_process(member: Member, part: Part, host: str) -> Process:
    """One process with what was captured of it."""
    return Process(
        key=member.key,
        role=member.role,
        rank=member.rank if member.role == "trainer" else None,
        engine=member.engine if member.role in ("engine", "engine_worker") else None,
        worker=member.worker if member.role == "engine_worker" else None,
        pid=member.seen.pid,
        host=host,
        command=part.command or " ".join(mask_argv(member.seen.words)),
        status=part.status,
        status_detail=part.status_detail,
        stacks=part.stacks,
        activity=part.activity,
        memory=part.memory,
        environment=part.environment,
        versions=part.versions,
        sockets=part.sockets,
        identified_by="; ".join(dict.fromkeys(member.by)),
        gaps=tuple(dict.fromkeys(part.gaps)),
    )


def _named(
    members: list[Member],
    everything: Mapping[int, Seen],
    ranks: Collection[int],
    host: str,
    connect: Callable[[Iterable[int]], Connections],
) -> tuple[Member, ...]:
    pids = [member.seen.pid for member in members if member.role in ("engine", "engine_worker")]
    trainers = tuple(Member(everything[pid], "trainer") for pid in ranks if pid in everything)
    engines = numbered_engines(
        Job("run", (*trainers, *members)), connect(pids) if pids else Connections({})
    )
    numbered = {member.seen.pid for member in engines}
    rest = [replace(m, engine=None) for m in members if m.seen.pid not in numbered]
    named = with_keys([*engines, *rest], host)
    order: tuple[Role, ...] = ("engine", "engine_worker")
    return tuple(sorted(named, key=lambda m: order.index(m.role) if m.role in order else 2))
