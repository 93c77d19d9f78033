"""Pods of a training job: which rank runs in which, by the names that job controllers give."""

from __future__ import annotations

import re
from collections.abc import Iterable

from watchdog.intake.parts import Parts, Who

_POD = re.compile(r"(?P<job>.+)-(?P<part>master|worker|trainer|node)-(?P<index>\d{1,5})$")


def ranks_of_pods(parts: Parts) -> dict[str, int]:
    """Pod to rank, where every pod runs one rank; empty where that is not certain.

    `job-worker-3` is rank 3; where the job has a `job-master-0`, that is rank 0 and the workers
    follow. A job of which a rank is known that this cannot give runs several ranks a pod.
    """
    pods = {who.host for who in _hints(parts) if any(by.startswith("pod ") for by in who.by)}
    names = [match for match in map(_POD.match, sorted(pods)) if match]
    if len(names) < 2 or len({match["job"] for match in names}) > 1:
        return {}
    first = 1 if any(match["part"] == "master" for match in names) else 0
    ranks = {m[0]: int(m["index"]) + (first if m["part"] != "master" else 0) for m in names}
    return ranks if _one_each(parts, ranks) else {}


def _one_each(parts: Parts, ranks: dict[str, int]) -> bool:
    values = set(ranks.values())
    known = {who.rank for who in _hints(parts)} | {part.file_who.rank for part in parts.processes}
    known -= {None}
    size = parts.environment.get("WORLD_SIZE", "")
    whole = values == set(range(len(ranks)))
    if size.isdigit() and int(size) != len(ranks):
        return False
    local = {who.local_rank for who in _hints(parts)} - {None, 0}
    return whole and len(values) == len(ranks) and known <= values and not local


def _hints(parts: Parts) -> Iterable[Who]:
    yield from parts.identities
    yield from (part.who for part in parts.processes)
    yield from (event.who for event in parts.events)
