"""Which process a part belongs to: pids, ranks and engines tied together across all files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from watchdog.intake.parts import NOBODY, Parts, ProcessPart, Who
from watchdog.intake.pods import ranks_of_pods
from watchdog.intake.stack_owner import is_of_helper


@dataclass
class Identities:
    """What is known of each pid, of all files together.

    Attributes:
        by_pid: Pid to everything that was said of it. A pid that two hosts use has an entry a
            host as well.
        only_engine: Index of the engine that everything without an index must belong to; `None`
            where several engines are possible.
        rank_of_label: Label of a node in file names (`node_b`) to the one rank that they name.
        rank_of_pod: Name of a pod to the rank in it, where each pod runs one rank.
        helpers: Pids of workers that a rank forked, of a data loader or a pool; they keep its
            command line and environment.
        ray: Whether Ray actors train: then a plain `train.py` is the driver.
    """

    by_pid: dict[tuple[str, int], Who] = field(default_factory=dict)
    hosts_of_pid: dict[int, set[str]] = field(default_factory=dict)
    only_engine: int | None = None
    rank_of_label: dict[str, int] = field(default_factory=dict)
    rank_of_pod: dict[str, int] = field(default_factory=dict)
    helpers: frozenset[int] = frozenset()
    ray: bool = False

    def of(self, who: Who) -> Who:
        """The hints with everything else that is known of the same process."""
        if who.pid is None:
            return self._with_pod(who)
        if who.pid in self.helpers:
            return replace(who, rank=None, local_rank=None, role="other")
        known = self.by_pid.get((who.host, who.pid))
        if known is None:
            hosts = self.hosts_of_pid.get(who.pid, set())
            known = self.by_pid.get((next(iter(hosts)), who.pid)) if len(hosts) == 1 else None
        return self._with_pod(who.or_else(known) if known else who)

    def _with_pod(self, who: Who) -> Who:
        rank = self.rank_of_pod.get(who.host) if who.host else None
        if rank is None or who.role not in (None, "trainer"):
            return who
        by = (f"number of pod {who.host}",)
        return who.or_else(Who(rank=rank, role="trainer", by=by))


def identities_of(parts: Parts) -> Identities:
    """Tie together what headers, prefixes, tables and file names say of each pid.

    A file's name names a process only if the file speaks of one process of that role: the pid of
    `rank3.txt` is rank 3's, but of a file with sixteen dumps it says nothing.
    """
    found = Identities()
    for who in _all_hints(parts):
        if who.pid is not None:
            _add(found, who)
    for part in parts.processes:
        if part.who.pid is not None and (by_file := _by_file(part, parts)) is not NOBODY:
            _add(found, replace(by_file.or_else(NOBODY), pid=part.who.pid, host=part.who.host))
    found.rank_of_label = _ranks_of_labels(parts)
    for part in parts.processes:
        _add_by_label(found, part, parts)
    _unify_hosts(found)
    found.rank_of_pod = ranks_of_pods(parts)
    found.helpers = frozenset(
        part.who.pid
        for part in parts.processes
        if part.who.pid is not None and part.stack is not None and is_of_helper(part.stack)
    )
    found.only_engine = _only_engine(found, parts)
    found.ray = any("ray::" in part.who.command or part.who.actor for part in parts.processes)
    return found


def _only_engine(found: Identities, parts: Parts) -> int | None:
    """The only engine there can be, by index; 0 where no file names one.

    Two workers of the same rank, or actors of the same class, without an index mean that there
    are several engines.
    """
    whos = [*found.by_pid.values(), *(part.file_who for part in parts.processes)]
    whos += [event.who for event in parts.events]
    engines = {who.engine for who in whos if who.engine is not None}
    if len(engines) > 1:
        return None
    workers: dict[tuple[object, ...], set[int]] = {}
    for (_, pid), who in found.by_pid.items():
        if who.role in ("engine", "engine_worker") and who.engine is None:
            what = who.command or who.actor
            workers.setdefault((who.role, what, who.replica, who.worker), set()).add(pid)
    if any(len(pids) > 1 for pids in workers.values()):
        return None
    return next(iter(engines), 0)


_LABEL = re.compile(r"(?<![a-z])(?:node|host|machine)[_-]?[a-z0-9]+(?=[_.\-])", re.IGNORECASE)


def label_of(file: str) -> str:
    """The node in a file's name, "" if there is none."""
    match = _LABEL.search(file.rsplit("/", 1)[-1])
    return match[0].lower() if match else ""


def stem_of(file: str) -> str:
    """The path without the last extension: `w0.env` and `w0.pyspy` are of one process."""
    folder, slash, base = file.rpartition("/")
    return f"{folder}{slash}{base.partition('.')[0]}."


def _belongs(other: ProcessPart, part: ProcessPart, label: str) -> bool:
    if other.who.role not in (None, "trainer"):
        return False
    if label:
        return label_of(other.file) == label
    return stem_of(other.file) == stem_of(part.file)


def _add_by_label(found: Identities, part: ProcessPart, parts: Parts) -> None:
    """A dump in a file of `node_b` is of the one rank that other files of `node_b` name."""
    label = label_of(part.file)
    same = [o for o in parts.processes if o.stack is not None and _belongs(o, part, label)]
    if len({other.who.pid for other in same}) > 1:
        return
    rank = found.rank_of_label.get(label or stem_of(part.file))
    if rank is None or part.who.pid is None or part.stack is None:
        return
    known = found.by_pid.get((part.who.host, part.who.pid), part.who)
    if known.rank is None and known.engine is None and known.role in (None, "trainer"):
        by = (f"files of {label or stem_of(part.file)} name rank {rank}",)
        _add(found, Who(pid=part.who.pid, host=part.who.host, rank=rank, role="trainer", by=by))


def _ranks_of_labels(parts: Parts) -> dict[str, int]:
    ranks: dict[str, set[int]] = {}
    for event in parts.events:
        label = label_of(event.file)
        if label and event.who.rank is not None:
            ranks.setdefault(label, set()).add(event.who.rank)
    for part in parts.processes:
        label = label_of(part.file)
        if label and part.file_who.rank is not None:
            ranks.setdefault(label, set()).add(part.file_who.rank)
        if part.environment and part.who.rank is not None:
            ranks.setdefault(label or stem_of(part.file), set()).add(part.who.rank)
    return {label: next(iter(own)) for label, own in ranks.items() if len(own) == 1}


def _all_hints(parts: Parts) -> Iterable[Who]:
    yield from parts.identities
    for part in parts.processes:
        yield part.who
    for event in parts.events:
        if event.who.pid is not None:
            yield event.who


def _add(found: Identities, who: Who) -> None:
    assert who.pid is not None
    key = (who.host, who.pid)
    known = found.by_pid.get(key, NOBODY)
    found.by_pid[key] = known.or_else(who) if known is not NOBODY else who
    if who.host:
        found.hosts_of_pid.setdefault(who.pid, set()).add(who.host)


def _unify_hosts(found: Identities) -> None:
    """Give what was said of a pid without a host to the one host that has it, and back."""
    for (host, pid), who in list(found.by_pid.items()):
        hosts = found.hosts_of_pid.get(pid, set())
        if host or len(hosts) != 1:
            continue
        other = next(iter(hosts))
        merged = found.by_pid[(other, pid)].or_else(who)
        found.by_pid[(other, pid)] = found.by_pid[("", pid)] = merged


def _by_file(part: ProcessPart, parts: Parts) -> Who:
    """What the file's name says of this part, if it can only mean this process."""
    name = part.file_who
    if name is NOBODY:
        return NOBODY
    same_file = [other for other in parts.processes if other.file == part.file]
    pids = Counter(other.who.pid for other in same_file if _role_fits(other, name))
    if not _role_fits(part, name):
        return NOBODY
    if len(pids) == 1:
        return name
    # Several processes: an engine's name covers all of its workers, nothing else does.
    return replace(name, rank=None, worker=None, pid=None, local_rank=None)


def _role_fits(part: ProcessPart, name: Who) -> bool:
    role = part.who.role
    if role is None or name.role is None:
        return True
    if name.role == "engine":
        return role in ("engine", "engine_worker")
    return role == name.role
