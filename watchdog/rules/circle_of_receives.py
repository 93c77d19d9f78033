"""Every rank waits in a point-to-point call of one direction, and nobody makes the other one.

What hangs
    All ranks of the circle: each receives from its neighbour before it sends, or each sends
    before it receives.

How it shows
    All ranks stand in `recv` at one place (or all in `send`), for long; nobody is elsewhere.

What to do
    Let even ranks send first and odd ones receive first, or post both with `batch_isend_irecv`.

Not to be confused with
    A pipeline whose first stage computes or waits for data while the later ones receive; a rank
    that is not described.

Source
    https://pytorch.org/docs/stable/distributed.html
    https://github.com/verl-project/verl/pull/7291
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "lock_deadlock"

_DIRECTIONS = (frozenset({"recv", "recv_object_list"}), frozenset({"send", "send_object_list"}))


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    inside = situation.doing("collective")
    if len(inside) < 2 or len(inside) < len(situation.trainers) or not peers.hung(situation):
        return None
    if not peers.everybody_is_described(situation) or len(inside) < (situation.world_size or 0):
        return None
    operations = {situation.wait(p).operation for p in inside}
    if not any(operations <= direction for direction in _DIRECTIONS):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        f"All {len(inside)} ranks are in {' or '.join(sorted(operations))} at once.",
        [seen(situation, p) for p in inside[:3]],
    )
