"""Which process a part belongs to: pids, ranks and engines tied together across all files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from watchdog.intake.parts import NOBODY, Parts, ProcessPart, Who


@dataclass
class Identities:
    """What is known of each pid, of all files together.

    Attributes:
        by_pid: Pid to everything that was said of it. A pid that two hosts use has an entry a
            host as well.
        single_engine: Whether the files speak of one engine at most, which then is engine 0.
    """

    by_pid: dict[tuple[str, int], Who] = field(default_factory=dict)
    hosts_of_pid: dict[int, set[str]] = field(default_factory=dict)
    single_engine: bool = False

    def of(self, who: Who) -> Who:
        """The hints with everything else that is known of the same process."""
        if who.pid is None:
            return who
        known = self.by_pid.get((who.host, who.pid))
        if known is None:
            hosts = self.hosts_of_pid.get(who.pid, set())
            known = self.by_pid.get((next(iter(hosts)), who.pid)) if len(hosts) == 1 else None
        return who.or_else(known) if known else who


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
    _unify_hosts(found)
    engines = {who.engine for who in found.by_pid.values() if who.engine is not None}
    engines |= {
        part.file_who.engine for part in parts.processes if part.file_who.engine is not None
    }
    engines |= {event.who.engine for event in parts.events if event.who.engine is not None}
    found.single_engine = len(engines) <= 1
    return found


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
