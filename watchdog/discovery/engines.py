"""The rollout engines of a job by number, each with what it started."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from watchdog.discovery.connections import Connections
from watchdog.discovery.jobs import Job, Member
from watchdog.discovery.titles import actor_index, parallel_ranks

_OPTION = re.compile(r"--(?:engine[-_](?:index|id|rank)|replica[-_]rank)[ =](\d{1,5})\b")
_URL_PORT = re.compile(r"https?://[^\s,/]*?:(\d{2,5})\b")


def numbered_engines(job: Job, connections: Connections) -> list[Member]:
    """Engines, ascending, each followed by its own processes.

    What an actor starts without a title is its server, and called engine as well; what has the
    title of a scheduler or worker is a worker, and so is what a server starts without a title.
    """
    family = {m.seen.pid: m for m in job.of("engine", "engine_worker", "other")}
    tops = [m for m in family.values() if m.seen.parent not in family and m.role != "other"]
    engines = _without_stray_workers(tops, connections)
    owner = {m.seen.pid: engine for m, engine in engines}
    numbers = _numbers([m for m, engine in engines if engine == m.seen.pid], job, connections)
    found: list[tuple[int, bool, int, Member]] = []
    num_workers: dict[int, int] = {}
    for pid, member in family.items():
        top = pid
        while family[top].seen.parent in family:
            top = family[top].seen.parent
        if owner.get(top) not in numbers:
            continue
        number, how = numbers[owner[top]]
        one = _inside(member, number, is_server=family[top].seen.has_title)
        if pid == owner[top]:
            one = replace(member, role="engine", engine=number, by=(*member.by, how))
        elif one.role == "engine_worker" and one.worker is None:
            one = replace(one, worker=num_workers.setdefault(number, 0))
            num_workers[number] += 1
        found.append((number, pid != owner[top], pid, one))
    return [member for *_, member in sorted(found, key=lambda entry: entry[:3])]


def _without_stray_workers(
    tops: Sequence[Member], connections: Connections
) -> list[tuple[Member, int]]:
    """Each topmost process with the pid of its engine: itself, unless it is only a worker.

    Workers that Ray started are no children of their engine; they belong to the one that they
    are connected to, or to the only one.
    """
    engines = [m.seen.pid for m in tops if m.role == "engine"]
    found = []
    for member in tops:
        pid = member.seen.pid
        if member.role == "engine_worker" and engines:
            peers = [engine for engine in engines if engine in connections.peers(pid)]
            if len(peers) == 1 or len(engines) == 1:
                pid = (peers or engines)[0]
        found.append((member, pid))
    return found


def _numbers(
    engines: Sequence[Member], job: Job, connections: Connections
) -> dict[int, tuple[int, str]]:
    """Number and how it is known, by pid."""
    told = (member.seen.variable("MILES_ROLLOUT_ENGINES") for member in job.of("trainer"))
    ports = [int(port) for port in _URL_PORT.findall(next(filter(None, told), ""))]
    given: dict[int, tuple[int, str]] = {}
    for one in engines:
        started = [m for m in job.members if m.seen.parent == one.seen.pid]
        known = _given(one, ports, connections)
        known = known or next(filter(None, (_given(m, ports, connections) for m in started)), None)
        if known is not None and known[0] not in {number for number, _ in given.values()}:
            given[one.seen.pid] = known
    taken = {number for number, _ in given.values()}
    free = (n for n in range(len(engines) + len(taken)) if n not in taken)
    guess = "number guessed by the order of start"
    if len(engines) == 1:
        guess = "the only engine here"
    for one in sorted(engines, key=lambda m: (m.seen.ticks, m.seen.pid)):
        if one.seen.pid not in given:
            given[one.seen.pid] = next(free), guess
    return given


def _given(one: Member, ports: Sequence[int], connections: Connections) -> tuple[int, str] | None:
    option = _OPTION.search(one.seen.line)
    if option:
        return int(option[1]), "number in its command line"
    index = actor_index(one.seen.line)
    if index is not None:
        return index, "number in the name of its actor"
    replica = one.seen.variable("VERL_REPLICA_RANK")
    if replica.isdigit():
        return int(replica), "VERL_REPLICA_RANK in its environment"
    listens = connections.listens_at(one.seen.pid)
    place = next((i for i, port in enumerate(ports) if port in listens), None)
    return None if place is None else (place, "its port among MILES_ROLLOUT_ENGINES")


def _inside(member: Member, engine: int, *, is_server: bool) -> Member:
    parallel = parallel_ranks(member.seen.line)
    role, worker = member.role, parallel.get("TP")
    if role in ("engine", "engine_worker") and not member.seen.has_title:
        # A fork has the command line of the server that it is a worker of.
        role = "engine" if is_server else "engine_worker"
    elif role == "engine_worker" and worker is None:
        worker = 0
    return replace(member, role=role, engine=engine, replica=parallel.get("DP"), worker=worker)
