"""Generation is paused in place, and the engine may go on stepping during the update.

What can happen
    Some workers of an engine are in a step, others in the update: both wait for all in
    collectives of the same group, and the trainer for the engine.

What decides
    Whether the engine finishes its current batch on all workers before it takes the update (its
    version), and whether requests are in flight at the sync.

What to do
    Use --pause-generation-mode retract or abort, or an engine that quiesces before the update.

Source
    https://github.com/radixark/miles/pull/2280
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks import modes
from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "core-woken-after-pause"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    if launch.switches.value("pause_generation_mode") != "in_place":
        return None
    facts = (*launch.shown("pause_generation_mode"), *modes.shown_async(launch))
    return Seen("likely" if modes.is_async(launch) else "suspect", facts)
