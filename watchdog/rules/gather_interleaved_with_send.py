"""A gather that all ranks must join is interleaved with a send that only rank 0 performs.

What hangs
    Rank 0 in the send of bucket k to the engines (or in a gather inside its transfer loop); the
    other ranks in the gather of bucket k+1. It passes with one or two ranks.

How it shows
    The ranks run ahead of rank 0: they are in an all-gather (`full_tensor`, a materialised
    bucket), rank 0 in a broadcast or a send of another group below it; the engines wait for data.
    NCCL's counters show rank 0 behind. GPUs at 100 % with idle power.

What to do
    Complete the gather of all buckets before the send, or put a barrier and a drained stream
    between buckets.

Not to be confused with
    missing_rank, where rank 0 is in no transfer; a plain broadcast in which all ranks take part.

Source
    https://github.com/RLinf/RLinf/pull/1540
    https://github.com/huggingface/trl/pull/6798
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "collective_mismatch"


_SENDING = (
    r"send|broadcast_bucket|push|packed_broadcast|_update_bucket|broadcast_state_dict|trainer_send"
)


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if not peers.hung(situation):
        return None
    gathering = situation.at(r"gather|full_tensor|wait_tensor|redistribute")
    for process in peers.accused(situation):
        wait = situation.wait(process)
        others = [p for p in gathering if p is not process]
        path = " ".join(f.function for f in (*wait.frames, *wait.path))
        in_transfer = bool(re.search(_SENDING, path)) and wait.kind in (
            "collective",
            "device_sync",
            "rpc",
        )
        if (
            not others
            or not in_transfer
            or any(
                re.search(_SENDING, " ".join(f.function for f in situation.wait(p).path))
                for p in others
            )
        ):
            continue
        behind = _is_behind(situation, process)
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed" if behind else "likely",
            f"{process.key} is in a transfer that only it performs, the others in the next gather.",
            [seen(situation, process), *(seen(situation, p) for p in others[:2]), *behind],
            culprits=[process],
        )
    return None


def _is_behind(situation: Situation, process: Process) -> list[str]:
    counters = peers.counters(situation)
    mine = counters.get(process.rank if process.rank is not None else -1)
    ahead = [
        rank for rank, (enqueued, _) in counters.items() if mine is not None and enqueued > mine[0]
    ]
    return (
        [f"rank {process.rank} has enqueued {mine[0]}, ranks {ahead} more"]
        if mine and ahead
        else []
    )
