"""An actor blocks its own event loop with a synchronous call, and cannot serve the answer.

What hangs
    That actor and everything that calls it.

How it shows
    `ray.get` (or another synchronous wait) below an asyncio `_run_once` on the loop's thread;
    Ray's warning `Using blocking ray.get inside async actor`.

What to do
    Await the reference, or move the call to a thread.

Not to be confused with
    A slow call in a loop that goes on.

Source
    https://github.com/rllm-org/rllm/issues/254
    https://github.com/sgl-project/sglang/issues/4663
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, quotes, seen
from watchdog.situation import Situation
from watchdog.waits import blocks_event_loop

CAUSE_CLASS: Final = "lock_deadlock"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    blocked = [
        p for p in situation.evidence.processes if p.role != "trainer" and blocks_event_loop(p)
    ]
    warned = situation.log(r"Using blocking ray\.get inside async")
    if blocked and peers.hung(situation):
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed" if warned else "likely",
            "An event loop waits in a synchronous call.",
            [*(seen(situation, p) for p in blocked[:2]), *quotes(warned, 1)],
            culprits=blocked,
        )
    return None
