"""Two groups are pending crosswise: each is consistent in itself.

What hangs
    Every member of both groups.

How it shows
    Some ranks wait in a collective of group A, others in one of group B, and a rank of each is a
    member of the other group.

What to do
    One order of groups on all ranks; or one communicator at a time with a barrier between.

Not to be confused with
    different_collectives, within one group; member_stopped and its like: behind a member that is
    stopped, gone or silent, the others wait in whatever group comes next.

Source
    https://github.com/THUDM/slime/pull/2331
    https://github.com/huggingface/trl/pull/6798
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "collective_mismatch"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    waits = [(p, situation.wait(p)) for p in peers.waiting(situation)]
    absent = {p.rank for p in situation.doing("stopped", "dead", "no_answer")}
    crossed = [
        (p, q)
        for i, (p, a) in enumerate(waits)
        for q, b in waits[i + 1 :]
        if a.group != b.group
        and q.rank in a.group_ranks
        and p.rank in b.group_ranks
        and absent.isdisjoint((*a.group_ranks, *b.group_ranks))
    ]
    if not crossed or not peers.hung(situation):
        return None
    first, second = crossed[0]
    accused = peers.accused(situation)
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed",
        "Ranks wait for each other in two groups.",
        [seen(situation, first), seen(situation, second)],
        culprits=accused or (first, second),
    )
