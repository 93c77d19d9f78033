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
    verdict_of,
)

CAUSE_CLASS: Final = "nccl_transport"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if (
        not peers.hung(situation)
        or verdict_of(situation).culprits
        or engines.members(situation, "rpc", "engine_step", "lock")
    ):
        return None
    waits = [situation.wait(p) for p in peers.waiting(situation)]
    if (
        len(waits) < 2
        or len(waits) < len(situation.trainers)
        or not peers.everybody_is_described(situation)
    ):
        return None
    same = len({(w.operation, w.group, w.sequence) for w in waits}) == 1 and all(
        w.kind == "collective" for w in waits
    )
    counters = peers.progress_of_ranks(situation)
    equal = len(counters) > 1 and len(set(counters.values())) == 1
    if not same:
        return None
    numbered = all(w.sequence is not None for w in waits) or equal
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if numbered else "possible",
        "All ranks are in the same collective.",
        [
            f"{len(waits)} ranks in {waits[0].operation} at {waits[0].where}",
            *([f"equal counters on {len(counters)} ranks"] if equal else []),
        ],
    )
