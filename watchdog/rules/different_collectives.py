"""The ranks of one group are in different collectives.

What hangs
    All of them.

How it shows
    Black boxes or flight recorders show another operation or number at the same group; watchdog
    lines, or torch's own check (`CollectiveFingerPrint`), give another operation or size at the
    same sequence number; stacks show other call
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

import re
from typing import Final

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import crash, peers
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation
from watchdog.verdict import numbered, set_up

CAUSE_CLASS: Final = "collective_mismatch"
IS_GENERAL: Final = True

_MEMBER = re.compile(r"PG GUID \S*?\((?P<group>[^)]+)\) Rank (?P<member>\d+)\]")


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if crash.first_error(situation, "CollectiveFingerPrint") is not None:
        return _in_the_log(situation)
    if not peers.hung(situation):
        return None
    for look in (_in_the_log, _at_one_number, _by_stacks, _by_count):
        found = look(situation)
        if found is not None:
            return found
    return None


def _in_the_log(situation: Situation) -> Finding | None:
    """Lines of NCCL's watchdog, or of torch's own check, with another operation or size."""
    parties = numbered.different(situation)
    if parties is None:
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed",
        "Ranks entered different operations at one number.",
        [*parties.described[:3], quoted(parties.lines[min(parties.lines)])],
        culprits=[p for p in situation.trainers if p.rank in parties.minority],
    )


def _at_one_number(situation: Situation) -> Finding | None:
    """Black boxes or flight recorders with another operation or size at one number of a group."""
    calls: dict[tuple[object, ...], dict[tuple[object, ...], Process]] = {}
    for process in situation.doing("collective"):
        wait = situation.wait(process)
        if wait.sequence is not None:
            call = (wait.group, wait.group_ranks, wait.sequence)
            calls.setdefault(call, {}).setdefault((wait.operation, wait.num_bytes), process)
    differing = next((list(found.values()) for found in calls.values() if len(found) > 1), None)
    if differing is None:
        return None
    operations = {situation.wait(p).operation for p in differing}
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed",
        f"Ranks are in different {'operations' if len(operations) > 1 else 'sizes of a message'}"
        " at one number of one group.",
        [seen(situation, process) for process in differing[:4]],
        culprits=peers.accused(situation),
    )


def _by_stacks(situation: Situation) -> Finding | None:
    """Stacks in different operations, where no rank is missing that could explain it.

    The set-up of a communicator says nothing of the order of collectives.
    """
    waiting = situation.doing("collective")
    building = set_up.in_set_up(situation, waiting)
    inside = [p for p in waiting if p not in building]
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


def _by_count(situation: Situation) -> Finding | None:
    """Members of one small group of which one has entered more collectives and waits for them.

    The other has completed all that it entered: it made fewer calls, and is not merely late. Where
    a whole rank is behind the others, another rule speaks.
    """
    if peers.behind(situation):
        return None
    entered: dict[str, dict[str, tuple[int, int]]] = {}
    for event in situation.evidence.log_events:
        member = _MEMBER.search(event.text)
        counts = [event.fields.get(name, "") for name in ("last_enqueued", "last_completed")]
        if member and all(count.isdigit() for count in counts):
            group = entered.setdefault(member["group"], {})
            group[member["member"]] = (int(counts[0]), int(counts[1]))
    split = {name: found for name, found in entered.items() if _is_split(found)}
    if not split:
        return None
    summary = "Members of one group entered different numbers of collectives."
    lines = [
        f"group {name}: " + ", ".join(f"member {m} entered {n}" for m, (n, _) in found.items())
        for name, found in list(split.items())[:3]
    ]
    return finding(__name__, CAUSE_CLASS, "likely", summary, lines)


def _is_split(counts: dict[str, tuple[int, int]]) -> bool:
    if len(counts) != 2:
        return False
    (fewer, done), (more, _) = sorted(counts.values())
    return fewer < more and done == fewer
