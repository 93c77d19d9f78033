"""The process that hosts the rendezvous store has ended, and the others complain about the store.

What hangs
    All ranks but rank 0; each of them in a collective or in its watchdog.

How it shows
    `Failed to check the "should dump" flag on TCPStore … Broken pipe`, `sendBytes failed`,
    `failed to recv, got 0 bytes` on ranks other than 0, and rank 0 is gone.

What to do
    Look at rank 0's own log: its end is the cause, these lines are the echo.

Not to be confused with
    A network that is cut, where rank 0 lives.

Source
    https://github.com/vllm-project/vllm/pull/32139
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "engine_dead"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    said = [e for e in situation.log(r"should dump|sendBytes failed|got 0 bytes") if e.rank != 0]
    owner = situation.trainer(0)
    if not said or owner is None or situation.wait(owner).kind != "dead":
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        "Rank 0, which hosts the store, is gone.",
        [f"rank 0: {owner.status_detail or owner.status}", quoted(said[0])],
        culprits=[owner],
    )
