"""All in collectives: the same one, or different ones?"""

from __future__ import annotations

from watchdog.evidence import Process
from watchdog.findings import Culprit
from watchdog.situation import Situation
from watchdog.situation.situation import WAITING_TOGETHER
from watchdog.verdict import odd_ranks
from watchdog.verdict.duration import lasted
from watchdog.verdict.groups import class_key, phrase
from watchdog.verdict.judgement import (
    Judgement,
    accused,
    name_of,
    names_of,
    rank_range,
    waiting_for,
)
from watchdog.waits import Wait

_LAUNCHING = r"ncclLocalOpAppend|ncclProxySaveOp"


def classes(situation: Situation) -> tuple[tuple[Process, ...], ...]:
    """The trainers in collectives by what they wait in, smallest class first."""
    found: dict[tuple[object, ...], list[Process]] = {}
    for process in situation.doing(*WAITING_TOGETHER):
        found.setdefault(_place(situation.wait(process)), []).append(process)
    return tuple(tuple(members) for members in sorted(found.values(), key=len))


def _place(wait: Wait) -> tuple[object, ...]:
    """A number says in which call a rank is, also where no stack shows the way there."""
    key = class_key(wait)
    return key if wait.sequence is None else (*key[:-1], wait.group_ranks)


def different_collectives(situation: Situation) -> Judgement | None:
    """Ranks of one group in different collectives: the minority, or who is behind."""
    found = classes(situation)
    if len(found) < 2:
        return None
    behind = _behind(situation, found)
    if not behind:
        parties = "; ".join(
            f"{names_of(members)}: {phrase(situation.wait(members[0]))}" for members in found
        )
        return Judgement("hung", f"{parties}. As many are here as there.")
    waiting = tuple(p for p in situation.trainers if p not in behind)
    culprits = tuple(
        accused(situation, p, f"{name_of(p)} is {phrase(situation.wait(p))}, the others are not")
        for p in behind
    )
    first = situation.wait(waiting[0]) if waiting else None
    chain = (waiting_for(waiting, first.operation, names_of(behind)),) if first else ()
    reason = (
        f"{names_of(behind)}: {phrase(situation.wait(behind[0]))}, while the others are elsewhere."
    )
    return Judgement("hung", reason, culprits, chain)


def _behind(situation: Situation, found: tuple[tuple[Process, ...], ...]) -> tuple[Process, ...]:
    """Lowest sequence number where all are numbered in one group, else the smallest class."""
    waits = [situation.wait(members[0]) for members in found]
    sequences = [wait.sequence for wait in waits]
    if (
        len({wait.group for wait in waits}) == 1
        and len(set(sequences)) > 1
        and None not in sequences
    ):
        lowest = min(s for s in sequences if s is not None)
        return next(m for m in found if situation.wait(m[0]).sequence == lowest)
    if len(found) == 2 and len(found[0]) == len(found[1]):
        return (*found[0], *found[1]) if len(found[0]) == 1 else ()
    return found[0]


def same_collective(situation: Situation) -> Judgement | None:
    """All in one collective: those who are not there hold them up, or the transport does."""
    found = classes(situation)
    if len(found) != 1 or not lasted(situation):
        return None
    members, wait = found[0], situation.wait(found[0][0])
    expected = set(wait.group_ranks) or set(range(situation.world_size or 0))
    missing = sorted(expected - {p.rank for p in members if p.rank is not None})
    if missing and situation.evidence.origin == "watchdog":
        return _absent(situation, missing, members)
    if wait.kind == "rendezvous" and len(members) == len(situation.trainers):
        reason = f"{names_of(members)}: {phrase(wait)}, and it does not come about."
        return Judgement("hung", reason)
    together = odd_ranks.waiting_together(situation)
    apart = [p for p in situation.trainers if situation.with_stack(p) and p not in together]
    if missing or apart or len(members) < 2:
        return None
    return Judgement(
        "hung", f"All ranks are in the same {wait.operation} ({wait.where}); nobody is missing."
    )


def _absent(situation: Situation, missing: list[int], members: tuple[Process, ...]) -> Judgement:
    """Ranks that are in the group and neither in its collective nor heard of."""
    operation = situation.wait(members[0]).operation
    why = f"never came to the {operation} of {names_of(members)}, and does not answer"
    culprits = tuple(
        accused(situation, known, why)
        if (known := situation.trainer(rank)) is not None
        else Culprit(f"rank {rank}", f"absent from {operation}", why, rank=rank)
        for rank in missing
    )
    return Judgement(
        "hung",
        f"{rank_range(missing)} never came to the {operation} of the others.",
        culprits,
        (waiting_for(members, operation, rank_range(missing)),),
    )


def absent_from_store(situation: Situation) -> Judgement | None:
    """Ranks that are not connected to the store at which the others build the first group.

    Only where the store's own connections are listed and each of them belongs to a known rank: a
    rank without a dump alone may well be there.
    """
    members = situation.doing("rendezvous")
    size, port = situation.world_size, situation.switches.environment("MASTER_PORT")
    if not members or len(members) < len(situation.trainers) or not size or not port:
        return None
    if not lasted(situation):
        return None
    sockets = [(p, s) for p in situation.trainers for s in p.sockets if s.state == "ESTABLISHED"]
    served = {_port(s.remote) for _, s in sockets if _port(s.local) == port}
    clients = {_port(s.local): p.rank for p, s in sockets if _port(s.remote) == port}
    absent = sorted(set(range(size)) - {p.rank for p in members})
    if not served or not served <= set(clients) or not absent:
        return None
    return _absent(situation, absent, members)


def _port(address: str) -> str:
    return address.rsplit(":", 1)[-1]


def lagging(situation: Situation) -> Judgement | None:
    """One rank that has not finished launching what the others are in, by NCCL's own count."""
    spinning = situation.at(_LAUNCHING)
    told = [e for e in situation.evidence.log_events if e.kind == "ras_behind"]
    ranks = {e.rank for e in told if e.rank is not None}
    found = tuple(p for p in situation.trainers if p in spinning or p.rank in ranks)
    if not found or len(found) * 2 > max(len(situation.trainers), 3):
        return None
    line = f": `{told[0].text.strip()[:160]}`" if told else ""
    culprits = tuple(
        accused(situation, p, f"{name_of(p)} has not finished launching the collective{line}")
        for p in found
    )
    others = tuple(p for p in situation.trainers if p not in found)
    chain = (waiting_for(others, "the collective", names_of(found)),) if others else ()
    reason = f"{names_of(found)}: {phrase(situation.wait(found[0]))}, and behind the others."
    return Judgement("hung", reason, culprits, chain)
