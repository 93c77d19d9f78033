"""Expandable segments are shared between processes that may not trace each other.

What can happen
    The engine cannot open the trainer's buffers (`pidfd_getfd: Operation not permitted`); the
    sync fails or waits for ever.

What decides
    Whether the container has CAP_SYS_PTRACE.

What to do
    Set expandable_segments:False for the trainer, or start the container with
    --cap-add=SYS_PTRACE.

Source
    https://github.com/verl-project/verl/issues/3377
"""

from __future__ import annotations

from typing import Final

from watchdog.signs.settings import expandable_segments
from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "ipc-needs-ptrace"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    setting = expandable_segments(launch.situation)
    if not setting or not launch.shares_devices:
        return None
    facts = (setting, *launch.shown("colocate", "hybrid_engine", "vllm_mode"))
    if launch.host is None or launch.host.can_trace is None:
        return Seen("suspect", facts, "the capabilities of the run's container are not known here")
    if launch.host.can_trace:
        return None
    return Seen("certain", (*facts, "this container has no CAP_SYS_PTRACE"))
