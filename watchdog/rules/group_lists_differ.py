"""Ranks create different groups in one call that all of them must make alike.

What hangs
    All of them, in `new_group`: each half waits for the ranks of the other one to make its call.

How it shows
    The stacks' variables give another list of ranks on different ranks, each rank is in its own
    list, and `use_local_synchronization` is off.

What to do
    Let every rank call `new_group` for every list in the same order, members or not; or pass
    `use_local_synchronization=True`; or build the groups with `init_device_mesh`.

Not to be confused with
    group_never_joined, where a rank is elsewhere; lists of several calls of which one is late.

Source
    https://github.com/huggingface/transformers/pull/48302
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "group_rendezvous"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if not peers.hung(situation):
        return None
    lists: dict[tuple[int, ...], Process] = {}
    local = False
    for process in situation.doing("rendezvous"):
        ranks, is_local = _arguments(situation, process)
        local = local or is_local
        if process.rank in ranks:
            lists.setdefault(ranks, process)
    disjoint = sum(len(ranks) for ranks in lists) == len({r for ranks in lists for r in ranks})
    if len(lists) < 2 or local or not disjoint:
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        "Ranks call new_group with different lists of ranks.",
        [f"{seen(situation, p)}, ranks {list(ranks)}" for ranks, p in list(lists.items())[:3]],
    )


def _arguments(situation: Situation, process: Process) -> tuple[tuple[int, ...], bool]:
    """The list that it passed, empty where unknown, and whether only its members meet."""
    ranks: tuple[int, ...] = ()
    for frame in situation.wait(process).frames:
        if frame.function != "new_group" and "new_group_with_tag" not in frame.function:
            continue
        if frame.locals.get("use_local_synchronization", "") == "True":
            return (), True
        text = frame.locals.get("ranks", "")
        if re.fullmatch(r"[\[(][\d, ]+[\])]", text):
            ranks = tuple(sorted(int(n) for n in re.findall(r"\d+", text)))
    return ranks, False
