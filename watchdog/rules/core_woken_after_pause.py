"""A data-parallel engine core was started again after the pause and sits in a dummy batch.

What hangs
    That core in the all-reduce of its data-parallel group; its peer in the weight update; the
    trainer in its call.

How it shows
    One EngineCore in `execute_dummy_batch` or `coordinate_batch_across_dp`, another in
    `collective_rpc(update_weights)` or `receive_weights`; the log shows a wave that starts after
    the pause.

What to do
    Upgrade vLLM to the two-phase pause; pause with a drain until all cores agree to be idle.

Not to be confused with
    different_collectives among trainers.

Source
    https://github.com/vllm-project/vllm/pull/38009
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "collective_mismatch"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    dummy = situation.at(r"execute_dummy_batch|coordinate_batch_across_dp", among=situation.engines)
    updating = situation.at(
        r"update_weights|receive_weights|collective_rpc",
        among=tuple(p for p in situation.engines if p not in dummy),
    )
    waves = situation.log(r"(starting|idle loop for) .*wave")
    if dummy and updating:
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed",
            "One engine core runs a dummy batch while its peer takes the weights.",
            [
                *(seen(situation, p) for p in (*dummy[:2], *updating[:1])),
                *(quoted(e) for e in waves[-1:]),
            ],
            culprits=dummy,
        )
    if dummy and peers.hung(situation):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely" if waves else "possible",
            "An engine core runs a dummy batch during the sync.",
            [seen(situation, p) for p in dummy[:2]],
            culprits=dummy,
        )
    return None
