"""Requests are retracted at every sync of a fully asynchronous run.

What can happen
    Retracted requests wait in the queue of a paused engine, so that its cache is never flushed:
    rank 0 repeats the flush, the others wait at the barrier.

What decides
    Whether the framework flushes after a retracting pause (miles does not since its pull
    request 1497), and whether requests are in flight at the sync.

What to do
    Update, or use --pause-generation-mode abort.

Source
    https://github.com/radixark/miles/pull/1497
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks import modes
from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "flush-refused"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    if launch.switches.value("pause_generation_mode") != "retract" or not modes.is_async(launch):
        return None
    return Seen("suspect", (*launch.shown("pause_generation_mode"), *modes.shown_async(launch)))
