"""Signs of trainers that do not meet: who waits together, who is apart."""

from __future__ import annotations

from watchdog.evidence import Process
from watchdog.situation import Situation
from watchdog.situation.situation import WAITING_TOGETHER
from watchdog.verdict import verdict_of
from watchdog.verdict.spoken import behind, counters
from watchdog.verdict.verdict import unaccounted

__all__ = [
    "accused",
    "behind",
    "counters",
    "everybody_is_described",
    "hung",
    "sequences",
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


def accused(situation: Situation) -> tuple[Process, ...]:
    """Trainers that the verdict names."""
    named = {culprit.process for culprit in verdict_of(situation).culprits}
    return tuple(p for p in situation.trainers if p.key in named)


def sequences(situation: Situation) -> dict[tuple[str, int], set[str]]:
    """Operations and sizes that the watchdog lines give for one number of one group."""
    found: dict[tuple[str, int], set[str]] = {}
    for event in situation.evidence.log_events:
        seq = event.fields.get("seq", "")
        if event.kind == "nccl_watchdog_timeout" and seq.isdigit() and "op" in event.fields:
            what = f"{event.fields['op']} of {event.fields.get('numel_in', '?')}"
            found.setdefault((event.fields.get("pg_id", ""), int(seq)), set()).add(what)
    return found
