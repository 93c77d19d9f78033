"""A rank ended because its disk is full.

What hangs
    All other ranks, in the collective that the rank does not come to; if it hosted the store,
    they complain about the store.

How it shows
    The earliest error is `No space left on device` or `Disk quota exceeded`, usually while a
    checkpoint is written; `df` shows 100 %. All time-outs and broken pipes come later.

What to do
    Make room, or keep fewer checkpoints; check the space before a save, and tell the other ranks
    of a failed one.

Not to be confused with
    shared_memory_too_small, where `/dev/shm` is full; storage_slow, where bytes still flow.

Source
    https://github.com/vllm-project/vllm/pull/32139
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "other"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    event = crash.first_error(
        situation, r"No space left on device|Errno 28\b|Disk quota exceeded|Errno 122\b"
    )
    if event is None or not crash.crashed(situation):
        return None
    if "/dev/shm" in " ".join((event.text, *event.fields.values())):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed",
        "The first error of the job is a full disk.",
        [quoted(event)],
    )
