"""The jobs of this host, told apart.

By the names that their launchers gave them, by the process tree, and for engines that were
started on their own, by who is connected to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from watchdog.discovery.connections import Connections, connections_of
from watchdog.discovery.processes import Seen, ancestors
from watchdog.discovery.roles import Part, is_training_script, parts
from watchdog.evidence import Role


@dataclass(frozen=True)
class Member:
    """One process of a job.

    Attributes:
        seen: The process.
        role: Its part.
        by: How its part and its number were found out.
        rank: Global rank of a trainer, `None` where nothing tells.
        engine: Index of the engine that it is or belongs to.
        replica: Data-parallel index inside the engine.
        worker: Rank inside the engine.
        key: Its name in the evidence.
    """

    seen: Seen
    role: Role
    by: tuple[str, ...] = ()
    rank: int | None = None
    engine: int | None = None
    replica: int | None = None
    worker: int | None = None
    key: str = ""


@dataclass(frozen=True)
class Job:
    """The processes of one job on this host.

    Attributes:
        name: What tells it from the others: `run x`, `Ray job 01000000`, `127.0.0.1:29500` …
        members: Trainers first, then engines, launchers and the rest; each by pid.
    """

    name: str
    members: tuple[Member, ...]

    def of(self, *roles: Role) -> tuple[Member, ...]:
        """The members with one of these parts."""
        return tuple(member for member in self.members if member.role in roles)

    @property
    def pids(self) -> frozenset[int]:
        """Process ids of all members."""
        return frozenset(member.seen.pid for member in self.members)


_ORDER: tuple[Role, ...] = ("trainer", "engine", "engine_worker", "driver", "launcher", "other")
# The first of a job's keys names it: what people chose before what was given.
_NAMES = ("run", "Ray job", "Slurm step", "torchrun", "rendezvous")


def jobs_among(
    everything: Mapping[int, Seen], connect: Callable[[Iterable[int]], Connections] = connections_of
) -> tuple[Job, ...]:
    """All jobs, in the order in which they were started.

    Args:
        everything: The processes of this host.
        connect: Reads the connections of processes, by pid.
    """
    found = parts(everything)
    joined = _Sets(found)
    keys = {pid: _keys(everything, pid, part) for pid, part in found.items()}
    by_key: dict[str, int] = {}
    for pid, own in keys.items():
        for key in own:
            joined.join(pid, by_key.setdefault(key, pid))
    _join_tree(everything, found, keys, joined)
    whole = [group for group in joined.groups() if _trains(group, found)]
    others = [group for group in joined.groups() if not _trains(group, found)]
    drivers = _possible_drivers(everything, found) if whole else []
    if whole and (others or drivers):
        everyone = {pid for group in (*whole, *others, drivers) for pid in group}
        connections = connect(everyone)
        for pid in drivers:
            _join_driver(pid, whole, found, connections)
        others = _join_connected(others, whole, connections)
    groups = [*whole, *(group for group in others if _serves(group, found))]
    jobs = [_job(group, found, keys, everything) for group in groups]
    return tuple(sorted(jobs, key=lambda job: min(m.seen.ticks for m in job.members)))


class _Sets:
    """Disjoint sets of pids."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._above = {pid: pid for pid in pids}

    def find(self, pid: int) -> int:
        while self._above[pid] != pid:
            pid = self._above[pid]
        return pid

    def join(self, one: int, other: int) -> None:
        self._above[self.find(one)] = self.find(other)

    def groups(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for pid in self._above:
            found.setdefault(self.find(pid), []).append(pid)
        return list(found.values())


def _keys(everything: Mapping[int, Seen], pid: int, part: Part) -> list[str]:
    one = everything[pid]
    get = one.variable
    found = []
    if get("MILES_WATCHDOG_RUN"):
        found.append(f"run {get('MILES_WATCHDOG_RUN')}")
    if get("RAY_JOB_ID"):
        found.append(f"Ray job {get('RAY_JOB_ID')} of raylet {get('RAY_RAYLET_PID') or '?'}")
    if part.role == "trainer" and get("MASTER_PORT"):
        address = f"{get('MASTER_ADDR')}:{get('MASTER_PORT')}"
        run_id = get("TORCHELASTIC_RUN_ID")
        name = f"torchrun {run_id} at" if run_id not in ("", "none") else "rendezvous"
        found.append(f"{name} {address}")
    if part.role == "trainer" and get("SLURM_JOB_ID") and get("SLURM_STEP_ID"):
        found.append(f"Slurm step {get('SLURM_JOB_ID')}.{get('SLURM_STEP_ID')}")
    return found


def _join_tree(
    everything: Mapping[int, Seen],
    found: Mapping[int, Part],
    keys: Mapping[int, list[str]],
    joined: _Sets,
) -> None:
    """What has no name of its own joins whom it descends from, or whom it started.

    An ancestor that two jobs share belongs to neither.
    """
    below: dict[int, set[int]] = {}
    for pid in found:
        nearest = next((above for above in ancestors(everything, pid) if above in found), None)
        if nearest is None:
            continue
        below.setdefault(nearest, set()).add(pid)
        if not keys[pid] and keys[nearest]:
            joined.join(pid, nearest)
    for above in sorted(below, reverse=True):
        if keys[above]:
            continue
        named = {joined.find(pid) for pid in below[above] if keys[pid] or pid in below}
        if len(named) <= 1:
            for pid in below[above]:
                joined.join(pid, above)


def _trains(group: Iterable[int], found: Mapping[int, Part]) -> bool:
    return any(found[pid].role == "trainer" for pid in group)


def _serves(group: Iterable[int], found: Mapping[int, Part]) -> bool:
    return any(found[pid].role in ("engine", "engine_worker") for pid in group)


def _possible_drivers(everything: Mapping[int, Seen], found: Mapping[int, Part]) -> list[int]:
    if not any(everything[pid].line.startswith("ray::") for pid in found):
        return []
    return [pid for pid, one in everything.items() if pid not in found and is_training_script(one)]


def _join_driver(
    pid: int, whole: list[list[int]], found: dict[int, Part], connections: Connections
) -> None:
    """A script of training is the driver of the only Ray job, or of the one it talks to."""
    talks = [group for group in whole if connections.peers(pid) & set(group)]
    if len(talks) == 1 or len(whole) == 1:
        (talks or whole)[0].append(pid)
        found[pid] = Part("driver", "a script of training beside Ray's workers")


def _join_connected(
    others: list[list[int]], whole: list[list[int]], connections: Connections
) -> list[list[int]]:
    """Give engines that were started on their own to the job that is connected to them."""
    left = []
    for group in others:
        peers = {peer for pid in group for peer in connections.peers(pid)}
        users = [job for job in whole if peers & set(job)]
        if len(users) == 1:
            users[0].extend(group)
        else:
            left.append(group)
    return left


def _job(
    group: Iterable[int],
    found: Mapping[int, Part],
    keys: Mapping[int, list[str]],
    everything: Mapping[int, Seen],
) -> Job:
    members = [Member(everything[pid], found[pid].role, (found[pid].by,)) for pid in group]
    members.sort(key=lambda member: (_ORDER.index(member.role), member.seen.pid))
    own = sorted(
        {key for pid in group for key in keys.get(pid, ())},
        key=lambda key: next((i for i, name in enumerate(_NAMES) if key.startswith(name)), 9),
    )
    name = own[0].partition(" of raylet")[0] if own else f"pid {min(group)}"
    return Job(name, tuple(replace(member) for member in members))
