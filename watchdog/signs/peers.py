"""Signs of trainers that do not meet: who waits together, who is apart."""

from __future__ import annotations

from watchdog.evidence import Process
from watchdog.situation import Situation
from watchdog.situation.situation import WAITING_TOGETHER
from watchdog.verdict import verdict_of
from watchdog.verdict.judgement import unaccounted
from watchdog.verdict.spoken import behind, counters

__all__ = [
    "accused",
    "behind",
    "counters",
    "everybody_is_described",
    "group_size",
    "hung",
    "waiting",
]


def hung(situation: Situation) -> bool:
    """Whether the verdict is that nothing moves."""
    return verdict_of(situation).state == "hung"


def waiting(situation: Situation) -> tuple[Process, ...]:
    """Trainers that wait for their peers."""
    return situation.doing(*WAITING_TOGETHER)


def everybody_is_described(situation: Situation) -> bool:
    """Whether no trainer rank is missing from the evidence, or the logs speak for it."""
    spoken = {e.rank for e in situation.evidence.log_events if e.kind.startswith("nccl_")}
    return all(rank in spoken for rank in unaccounted(situation))


def group_size(situation: Situation) -> int | None:
    """Ranks of the job, as told, or as NCCL says of the largest communicator of all trainers."""
    if situation.world_size is not None:
        return situation.world_size
    sizes = [
        int(e.fields["nranks"])
        for e in situation.evidence.log_events
        if e.kind == "nccl_comm_init"
        and e.rank is not None
        and e.fields.get("nranks", "").isdigit()
    ]
    return max(sizes, default=None)


def accused(situation: Situation) -> tuple[Process, ...]:
    """Trainers that the verdict names."""
    named = {culprit.process for culprit in verdict_of(situation).culprits}
    return tuple(p for p in situation.trainers if p.key in named)
