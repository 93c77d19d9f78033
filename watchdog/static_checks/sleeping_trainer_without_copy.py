"""The trainer sleeps on devices of its own, where older checkouts keep no host copy.

What can happen
    The sync reads the weights of a sleeping trainer: it hangs, or ends with `invalid argument`.

What decides
    The date of the miles checkout: from 2026-09-08 on, every sleeping trainer has a copy.

What to do
    Update miles, or drop --offload-train where trainer and engines do not share devices.

Source
    https://github.com/radixark/miles/pull/3128
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks import dates
from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "paused-memory-read"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    switches = launch.switches
    if not switches.on("offload_train") or launch.shares_devices:
        return None
    others = ("ref_load", "keep_old_actor", "opd_teacher_load", "teacher_load")
    critic = switches.value("advantage_estimator") == "ppo"
    if not (switches.on(*others) or critic):
        return None
    fixed = dates.is_from("miles", "2026-09-08", launch)
    if fixed:
        return None
    facts = launch.shown("offload_train", *others, "advantage_estimator")
    if fixed is None:
        return Seen("suspect", facts, "the date of the miles checkout is not known here")
    return Seen("likely", (*facts, dates.shown("miles", launch)))
