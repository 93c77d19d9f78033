"""One rank waits for a file of somebody else, and the others are already in the next collective.

What hangs
    The other ranks, in the gather or barrier; after their time-out they fail first.

How it shows
    A polling frame (`wait_for_path`, a ready marker) on one rank and a line that counts its
    seconds; the writer of the file is still busy (evaluations, running requests).

What to do
    Tell all ranks before they enter the collective, or let all of them wait; bound the wait for
    the marker.

Not to be confused with
    storage_slow and negative_lookup_cache, where the file exists.

Source
    https://github.com/PrimeIntellect-ai/prime-rl/pull/2337
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "rank_subset_collective"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    polling = situation.doing("file_wait")
    waiting = peers.waiting(situation)
    told = situation.log(r"[Ww]aiting for (path|NCCL_READY|file)")
    timed_out = [e for e in situation.evidence.log_events if e.kind == "nccl_watchdog_timeout"]
    if polling and (waiting or timed_out) and len(polling) < max(len(situation.trainers), 2):
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed" if told else "likely",
            "A rank waits for a file while the others are in a collective.",
            [
                *(seen(situation, p) for p in (*polling[:2], *waiting[:1])),
                *(quoted(e) for e in told[-1:]),
            ],
            culprits=polling,
        )
    return None
