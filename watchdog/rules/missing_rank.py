"""A rank never entered the collective that the others wait in.

What hangs
    All ranks of the group but one, or a few.

How it shows
    The others stand at the same collective; the named rank is in other code, outside of the sync,
    past an exception, or not to be reached.

What to do
    Look at the named rank's own log and stack. Either it is stuck in a call before the collective:
    find out what that call waits for. Or it took a branch that the others did not: no rank-local
    condition before a collective.

Not to be confused with
    different_collectives, where every rank is in one; a rank that is dead, stopped or reads its
    weights, which have rules of their own.

Source
    https://github.com/radixark/miles/pull/947
    https://github.com/ISEEKYAN/Megatron-LM/pull/82
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation
from watchdog.verdict import (
    duration,
    numbered,
    spoken,
    targets,
    verdict_of,
)
from watchdog.verdict.judgement import name_of
from watchdog.verdict.silent_hosts import silent_hosts

CAUSE_CLASS: Final = "rank_subset_collective"
IS_GENERAL: Final = True


_EXPLAINED = (
    "weight_read",
    "paused_memory",
    "gil_held",
    "stopped",
    "dead",
    "rpc",
    "lock",
    "file_wait",
    "file_io",
    "rendezvous",
    "collective",
    "store",
    "slow_work",
    "device_sync",
    "memory_switch",
    "engine_step",
    "await",
    "compute",
)


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    # Who says what it entered has come, if to another call.
    if not peers.hung(situation) or numbered.different(situation) is not None:
        return None
    waiting = [p for p in peers.waiting(situation) if situation.wait(p).kind == "collective"]
    silent = [p for processes in silent_hosts(situation).values() for p in processes]
    absent = [
        p
        for p in peers.accused(situation)
        if p not in silent
        and (situation.wait(p).kind not in _EXPLAINED or _calls_nobody_known(situation, p))
    ]
    gone = [
        c
        for c in verdict_of(situation).culprits
        if c.process not in situation.processes and c.rank is not None
    ]
    late = peers.behind(situation)
    if late and not waiting:
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "A rank has entered fewer collectives than the others.",
            [f"rank {rank}: last enqueued {counts[0]}" for rank, counts in late.items()],
        )
    named, line = spoken.named_missing(situation)
    if named and not waiting and any(p.rank in named for p in absent):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "A rank did not come to the barrier that names it.",
            [line.strip()[:200], *(seen(situation, p) for p in absent[:3])],
            culprits=absent,
        )
    if not waiting or not (absent or gone):
        return None
    fetching = [p for p in absent if situation.wait(p).kind == "rpc"]
    outside = [p for p in absent if p.position is not None and not p.position.section]
    sure = bool(outside) or (len(absent) * 2 <= len(waiting) and duration.lasted(situation))
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if sure and not gone and not fetching else "possible",
        "A rank did not come to the collective of the others.",
        [
            *(seen(situation, p) for p in absent[:3]),
            *(f"{c.process}: {c.why}" for c in gone[:3]),
            seen(situation, waiting[0]),
        ],
        culprits=absent,
        remedy=_advice(situation, absent, waiting[0]) if not outside else "",
    )


def _advice(situation: Situation, absent: Sequence[Process], waiting: Process) -> str:
    """What to do where a call is seen that keeps a rank from coming, "" where none is."""
    for process in absent:
        wait = situation.wait(process)
        who, call = name_of(process), wait.site or wait.operation
        if call and call != situation.wait(waiting).site:
            return (
                f"{who[:1].upper()}{who[1:]} is stuck before the collective, in {call}: find "
                "out what that waits for. Only if it waits for nothing: it took another branch "
                "than the others, by a rank-local condition."
            )
    return ""


def _calls_nobody_known(situation: Situation, process: Process) -> bool:
    """Whether it has finished all that it entered, and waits for an answer of nobody of the job.

    What feeds its data may be slow to all alike; that the others went on without says otherwise.
    """
    called = targets.called_engine(situation, process)
    if situation.wait(process).kind != "rpc" or called is not None or not process.collectives:
        return False
    return all(collective.finished for collective in process.collectives)
