"""Generation was paused for an update and never resumed.

What hangs
    Every request that the engine holds, and whoever waits for rollouts: the trainer looks idle or
    waits for samples. No collective is involved.

How it shows
    The last control call of the engine is a pause without a resume after it, the update in
    between ended well, `/health` is answered 200, no request runs and the number of held or
    waiting requests does not change.

What to do
    Resume the engine (`/continue_generation`, `/resume`) and resume on every path that leaves the
    update, errors included. Let the engine resume by itself when the client that paused it is
    gone.

Not to be confused with
    The pause of a sync that is still running; an engine that is idle because nothing is asked of
    it.

Source
    https://github.com/areal-project/AReaL/issues/1160
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation
from watchdog.verdict.engines import in_update

CAUSE_CLASS: Final = "engine_rpc_stuck"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    for history in situation.engine_histories:
        if not history.is_paused:
            continue
        pause = history.last("pause")
        held = history.holds_requests
        name = f"engine {history.index}" if history.index is not None else "the engine"
        supports = [*([quoted(pause.event)] if pause else []), *(quoted(e) for e in held[-1:])]
        stuck = len(held) >= 2 and not history.generates
        if stuck and not in_update(situation) and peers.hung(situation):
            return finding(
                __name__,
                CAUSE_CLASS,
                "confirmed",
                f"{name} was paused and never resumed.",
                supports,
            )
        if held and peers.hung(situation):
            return finding(
                __name__, CAUSE_CLASS, "likely", f"{name} is paused and holds requests.", supports
            )
    holding = situation.at(
        r"wait_until_generation_continues|wait_for_resume|is_pause_cond|_wait_unpaused",
        among=situation.engines,
    )
    if holding and peers.hung(situation) and not in_update(situation):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "An engine holds a request because generation is paused.",
            [seen(situation, p) for p in holding],
            culprits=holding,
        )
    return None
