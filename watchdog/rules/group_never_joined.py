"""A rank never joins a group that the others are building.

What hangs
    The ranks that build it, in `new_group` or `init_process_group`.

How it shows
    Some ranks are in the creation of a group, and at least one is elsewhere: in other code, in a
    collective of another group, or outside of the sync.

What to do
    Every rank must call new_group for every group in the same order, members or not. Look at what
    the named rank does instead.

Not to be confused with
    communicator_split_of_bound_group, group_size_mismatch, loopback_address, where everybody
    came.

Source
    https://github.com/huggingface/transformers/pull/48302
    https://github.com/ai-dynamo/dynamo/pull/11418
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation
from watchdog.verdict import (
    network,
    set_up,
    verdict_of,
)
from watchdog.waits.patterns import WaitKind

CAUSE_CLASS: Final = "group_rendezvous"
IS_GENERAL: Final = True


_EXPLAINED: tuple[WaitKind, ...] = ("gil_held", "stopped", "dead", "paused_memory", "weight_read")
"""What a rank elsewhere may do that has a rule of its own."""


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    absent_members = set_up.absent_members(situation)
    if absent_members and peers.hung(situation):
        building = set_up.in_set_up(situation, situation.evidence.processes)
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "A member did not come to the set-up of a group in which the others wait.",
            [seen(situation, p) for p in (*absent_members[:3], *building[:2])],
            culprits=absent_members,
        )
    inside = situation.doing("rendezvous", "store")
    accused = peers.accused(situation)
    explained = situation.doing(*_EXPLAINED)
    elsewhere = [p for p in accused if p not in inside and p not in explained]
    if not inside or not peers.hung(situation) or network.loopback_lines(situation):
        return None
    if elsewhere and not situation.doing("collective"):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "A rank is not where the others build a group.",
            [
                *(seen(situation, p) for p in elsewhere[:3]),
                *(seen(situation, p) for p in inside[:2]),
            ],
            culprits=elsewhere,
        )
    absent = [c for c in verdict_of(situation).culprits if c.process not in situation.processes]
    if absent and len(inside) == len(situation.trainers):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "A rank never came to the group that the others build.",
            [*(f"{c.process}: {c.why}" for c in absent[:3]), seen(situation, inside[0])],
        )
    if explained or len(inside) == len(situation.trainers):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "possible",
        "Some ranks build a group while others are in collectives.",
        [seen(situation, p) for p in inside[:3]],
        culprits=inside,
    )
