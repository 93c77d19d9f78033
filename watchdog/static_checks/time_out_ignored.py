"""The time-out that is set is dropped when the process groups are rebuilt.

What can happen
    After the first sleep the groups use ten minutes again, whatever the flag says: legal waits
    are killed, or the run takes longer to fail than was meant.

What decides
    The version: miles from 2026-07-10 and slime from 0.3.1 keep the time-out.

What to do
    Update the framework, or plan with ten minutes.

Source
    https://github.com/THUDM/slime/pull/2095
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks import dates
from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "time-out-not-applied"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    switches = launch.switches
    minutes = switches.number("distributed_timeout_minutes")
    if minutes in (None, 10) or not switches.on("offload_train", "colocate", "offload"):
        return None
    known = [
        dates.is_from("miles", "2026-07-10", launch),
        dates.is_version_from("slime", "0.3.1", launch),
    ]
    if True in known:
        return None
    facts = launch.shown("distributed_timeout_minutes", "offload_train", "colocate", "offload")
    if False in known:
        return Seen("certain", facts)
    return Seen("suspect", facts, "the version of miles or slime is not known here")
