"""All ranks are in the same collective, and it does not end.

What hangs
    All of them.

How it shows
    The same operation, group and number on every rank; the GPUs at 100 % with idle power, or the
    CPUs idle in gloo. Nobody is missing and nobody is elsewhere.

What to do
    Stop looking for a divergence: compare environment, NCCL build, interfaces and topology of the
    ranks; run with NCCL_DEBUG=INFO; try NCCL_P2P_DISABLE=1, NCCL_IB_DISABLE=1, NCCL_NVLS_ENABLE=0
    one by one to find the transport.

Not to be confused with
    nccl_versions_differ and transport_settings_differ, which say more; a rank that is not
    described.

Source
    https://github.com/verl-project/verl/pull/5693
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import engines, peers
from watchdog.signs.answers import finding
from watchdog.situation import Situation
from watchdog.verdict import (
    numbered,
    verdict_of,
)

CAUSE_CLASS: Final = "nccl_transport"
IS_GENERAL: Final = True

_ONE_SIDED = frozenset({"recv", "send", "irecv", "isend", "recv_object_list", "send_object_list"})
"""Halves of a transfer: all ranks in the same half is a circle, not trouble of the transport."""


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if not peers.hung(situation) or verdict_of(situation).culprits:
        return None
    if engines.members(situation, "rpc", "engine_step", "lock", "collective", "rendezvous"):
        return None
    counters = peers.counters(situation)
    equal = len(counters) > 1 and len(set(counters.values())) == 1
    waits = [situation.wait(p) for p in peers.waiting(situation)]
    if not any(situation.with_stack(p) for p in situation.trainers):
        return _by_log(situation, counters) if equal else None
    if equal and waits and _others_only_log(situation, counters):
        return _by_log(situation, counters)
    if len(waits) < 2 or len(waits) < len(situation.trainers):
        return None
    places = {(w.kind, w.operation, w.group, w.sequence) for w in waits}
    if len(places) > 1 or waits[0].kind != "collective" or waits[0].operation in _ONE_SIDED:
        return None
    if not peers.everybody_is_described(situation):
        return None
    numbered = waits[0].sequence is not None or equal
    complete = len(waits) == situation.world_size
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if numbered and complete else "possible",
        "All ranks are in the same collective.",
        [f"{len(waits)} ranks in {waits[0].operation} at {waits[0].where}"],
    )


def _others_only_log(situation: Situation, counters: dict[int, tuple[int, int]]) -> bool:
    """Whether some ranks have stacks, all in the wait, and for the others their counters speak."""
    waiting = peers.waiting(situation)
    silent = [p for p in situation.trainers if not situation.with_stack(p)]
    seen = [p for p in situation.trainers if situation.with_stack(p)]
    places = {situation.wait(p).operation for p in seen}
    spoken = all(p.rank in counters for p in situation.trainers)
    return bool(silent) and spoken and len(places) == 1 and all(p in waiting for p in seen)


def _by_log(situation: Situation, counters: dict[int, tuple[int, int]]) -> Finding | None:
    """The watchdog lines alone; they prove it only where it is known that no rank is missing."""
    if numbered.different(situation) is not None:
        return None
    enqueued, completed = next(iter(counters.values()))
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if len(counters) == peers.group_size(situation) else "possible",
        f"{len(counters)} ranks gave up waiting at the same number.",
        [f"last enqueued {enqueued}, last completed {completed} on {len(counters)} ranks"],
    )
