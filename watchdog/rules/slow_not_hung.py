"""Nothing hangs: the rank that the others wait for is still working.

What hangs
    Nothing. One rank, or a few, compile, load, generate or send; the others wait for them.

How it shows
    Two looks at the working rank differ: other frames, more bytes, more CPU time, fresh marks.

What to do
    Wait, or give the waiting group a longer time-out. Warm caches, faster storage or smaller
    buckets shorten it; the report names the rate.

Not to be confused with
    A polling loop that alternates between two lines, which moves nothing.

Source
    https://github.com/radixark/miles/pull/3132
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation
from watchdog.verdict import progress, verdict_of

CAUSE_CLASS: Final = "slow_not_hung"
IS_GENERAL: Final = True


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if verdict_of(situation).state != "slow":
        return None
    found = progress.movers(situation) or progress.moving_engine(situation)
    work = situation.doing("slow_work", "file_io", among=found)
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed" if work else "likely",
        "The rank that the others wait for is working.",
        [f"{seen(situation, p)}; {situation.movements[p.key].how}" for p in found],
        culprits=found,
    )
