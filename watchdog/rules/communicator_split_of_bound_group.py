"""The update group is made by splitting a communicator that the other trainer ranks do not split.

What hangs
    Rank 0 in `ncclCommSplit`; the engines in their own creation of the group; the other trainer
    ranks elsewhere.

How it shows
    Native frames `ncclCommSplit`, `commGetSplitInfo`; NCCL's line names a parent communicator of
    the trainer; the default group was created with a device id (`Eagerly connecting nccl backend
    with device`).

What to do
    Create the default group without `device_id`, or clear the bound device before building the
    update group.

Not to be confused with
    group_size_mismatch, where a member of the group itself is missing.

Source
    https://github.com/NVIDIA-NeMo/RL/pull/3189
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, quotes, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "group_rendezvous"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    splitting = situation.at(
        r"ncclCommSplit|commGetSplitInfo|eagerConnectSingleDevice",
        among=situation.evidence.processes,
    )
    if not splitting or not peers.hung(situation):
        return None
    others = [p for p in situation.trainers if p not in splitting]
    parent = situation.log(r"ncclCommSplit .*parent 0x|Eagerly connecting nccl backend")
    if others and len(splitting) < len(situation.trainers):
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed" if parent else "likely",
            "A rank splits a communicator whose other members do not take part.",
            [
                *(seen(situation, p) for p in splitting),
                *(seen(situation, p) for p in others[:1]),
                *quotes(parent, 2),
            ],
            culprits=splitting,
        )
    return None
