"""The default group is bound to a device, and a weight group is made beside it.

What can happen
    The group with the engines is split off the default communicator, for which all trainers are
    needed: rank 0 waits alone in the first message.

What decides
    Whether the weight group is made by a copy of torch's `_new_process_group_helper` without
    clearing the default group's device.

What to do
    Call init_process_group without device_id, or clear `bound_device_id` while the weight group
    is made.

Source
    https://github.com/NVIDIA-NeMo/RL/pull/3189
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "communicator-split-of-bound-group"

_BOUND = re.compile(r"init_process_group\((?:[^()]|\([^()]*\))*\bdevice_id\s*=(?!\s*None\b)")


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    facts = [
        f"{name}: init_process_group(… device_id=…)"
        for name, text in launch.sources.items()
        if _BOUND.search(text)
    ]
    return Seen("suspect", tuple(facts)) if facts else None
