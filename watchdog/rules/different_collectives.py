"""The ranks of one group are in different collectives.

What hangs
    All of them.

How it shows
    Black boxes or flight recorders show another operation or number at the same group; watchdog
    lines give another operation or size at the same sequence number; stacks show other call
    sites.

What to do
    Find the decision before the collective that differs between the ranks; there must be one
    order on all of them.

Not to be confused with
    A rank that is late, whose next collective is the one of the others; transport trouble, where
    all are in the same one.

Source
    https://github.com/radixark/miles/issues/574
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
    if not peers.hung(situation):
        return None
    sizes = [
        f"number {seq} of group {group or '?'}: {' and '.join(sorted(found))}"
        for (group, seq), found in peers.sequences(situation).items()
        if len(found) > 1
    ]
    if sizes:
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed",
            "Ranks entered different operations at one number.",
            sizes[:3],
        )
    waiting = peers.waiting(situation)
    numbered = [
        (p, situation.wait(p))
        for p in waiting
        if situation.wait(p).sequence is not None and situation.wait(p).kind == "collective"
    ]
    for process, wait in numbered:
        other = next(
            (
                q
                for q, w in numbered
                if w.group == wait.group
                and w.sequence == wait.sequence
                and w.operation != wait.operation
            ),
            None,
        )
        if other is not None:
            return finding(
                __name__,
                CAUSE_CLASS,
                "confirmed",
                "Ranks are in different operations of one group.",
                [seen(situation, process), seen(situation, other)],
                culprits=peers.accused(situation),
            )
    accused = [p for p in peers.accused(situation) if situation.wait(p).kind == "collective"]
    others = [p for p in waiting if p not in accused and situation.wait(p).kind == "collective"]
    differ = [
        p
        for p in accused
        if all(situation.wait(p).operation != situation.wait(q).operation for q in others)
    ]
    if differ and others:
        sure = peers.everybody_is_described(situation)
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely" if sure else "possible",
            "Ranks wait in different collectives.",
            [seen(situation, differ[0]), seen(situation, others[0])],
            culprits=differ,
        )
    return None
