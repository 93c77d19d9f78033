"""The engine still holds the update group of a trainer that is gone.

What hangs
    The new trainer, in the creation of the group.

How it shows
    `Weight update group already initialized`, `group … is already set …, skipped` of an engine that
    idles while the other members wait for it, or a second init in the engine's log without a close
    between; the engine is older than the trainer.

What to do
    Close the group on the engine when the trainer goes (`close_communicator`,
    `destroy_weights_update_group`), or restart the engine.

Not to be confused with
    A port that is still in use.

Source
    https://github.com/huggingface/trl/issues/3408
    https://github.com/vllm-project/vllm/pull/40646
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted, quotes, seen
from watchdog.situation import Situation
from watchdog.verdict import (
    network,
    set_up,
)

CAUSE_CLASS: Final = "group_rendezvous"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    said = situation.log(
        r"already initialized|group .{0,40}already exists|Call close_communicator first"
    )
    if said:
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "The engine still has an update group.",
            quotes(said, 2),
        )
    kept = set_up.kept_groups(situation)
    if kept:
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "A member still has the group that the others build, and did not join it again.",
            [*quotes((event for event, _ in kept), 2), seen(situation, kept[0][1])],
            culprits=set_up.absent_members(situation),
        )
    for history in situation.engine_histories:
        inits = [c for c in history.controls if c.op == "init_group"]
        closes = [c for c in history.controls if c.op == "destroy_group"]
        if len(inits) >= 2 and not closes and network.building(situation):
            return finding(
                __name__,
                CAUSE_CLASS,
                "possible",
                "The update group was created twice and never closed.",
                [quoted(c.event) for c in inits[-2:]],
            )
    return None
