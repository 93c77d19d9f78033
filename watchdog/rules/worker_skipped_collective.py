"""One worker of an engine skipped a collective that its peers are in.

What hangs
    All workers of the engine: the many in the collective, the one in the next turn of its loop.

How it shows
    All but one or a few workers stand in one collective; the others already wait for the next
    request, or are in another collective, and stay there.

What to do
    Find the condition before the collective that reads a worker's own clock, queue or cache, and
    let one worker decide for all of them.

Not to be confused with
    The idle picture, in which all workers but the first wait in the broadcast of requests; an
    update that some workers have not begun.

Source
    https://github.com/sgl-project/sglang/pull/38273
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import engines, peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "rank_subset_collective"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    odd, others = engines.odd_workers(situation)
    if not odd or not peers.hung(situation) or len(odd) * 2 >= len(others):
        return None
    if situation.at(r"update_weight|receive_weights|load_weights", among=(*odd, *others)):
        return None
    meets = all(situation.wait(p).kind in ("idle", "collective") for p in odd)
    if not meets or any(situation.wait(p).kind != "collective" for p in others):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        f"{odd[0].key} is not in the collective of its peers.",
        [*(seen(situation, p) for p in odd[:2]), seen(situation, others[0])],
        culprits=odd,
    )
