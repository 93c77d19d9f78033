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

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "collective_mismatch"
IS_GENERAL: Final = True


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if not peers.hung(situation):
        return None
    for look in (_in_the_log, _at_one_number, _by_stacks):
        found = look(situation)
        if found is not None:
            return found
    return None


def _in_the_log(situation: Situation) -> Finding | None:
    """Watchdog lines with another operation or size at one number."""
    sizes = [
        f"number {seq} of group {group or '?'}: {' and '.join(sorted(found))}"
        for (group, seq), found in peers.sequences(situation).items()
        if len(found) > 1
    ]
    if not sizes:
        return None
    summary = "Ranks entered different operations at one number."
    return finding(__name__, CAUSE_CLASS, "confirmed", summary, sizes[:3])


def _at_one_number(situation: Situation) -> Finding | None:
    """Black boxes or flight recorders with another operation at one number of one group."""
    first: dict[tuple[str, int], Process] = {}
    for process in situation.doing("collective"):
        wait = situation.wait(process)
        if wait.sequence is None:
            continue
        other = first.setdefault((wait.group, wait.sequence), process)
        if situation.wait(other).operation != wait.operation:
            return finding(
                __name__,
                CAUSE_CLASS,
                "confirmed",
                "Ranks are in different operations of one group.",
                [seen(situation, other), seen(situation, process)],
                culprits=peers.accused(situation),
            )
    return None


def _by_stacks(situation: Situation) -> Finding | None:
    """Stacks in different operations, where no rank is missing that could explain it."""
    inside = situation.doing("collective")
    accused = [p for p in peers.accused(situation) if p in inside]
    others = [p for p in inside if p not in accused]
    operations = {situation.wait(p).operation for p in others}
    differ = [p for p in accused if situation.wait(p).operation not in operations]
    if not differ or not others:
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if peers.everybody_is_described(situation) else "possible",
        "Ranks wait in different collectives.",
        [seen(situation, differ[0]), seen(situation, others[0])],
        culprits=differ,
    )
