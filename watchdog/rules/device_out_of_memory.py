"""One rank ran out of device memory, and every other rank only waits for it.

What hangs
    All ranks but one, in the next collective.

How it shows
    The earliest exception of all logs is `CUDA out of memory` (or a memory saver that cannot map
    its pages again) on one rank or engine; every time-out line comes later.

What to do
    Leave more room: a smaller engine fraction, smaller buckets, released caches before waking up.
    Look for a leak where it fails only after many syncs.

Not to be confused with
    A time-out or a connection error, which the others write because of it.

Source
    https://github.com/radixark/miles/pull/3147
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "oom_or_killed"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    event = crash.first_error(
        situation,
        r"out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|cudaError 2\b|error: 2 ",
    )
    if event is None or not crash.crashed(situation):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed",
        "The first error of the job is a lack of device memory.",
        [quoted(event)],
    )
