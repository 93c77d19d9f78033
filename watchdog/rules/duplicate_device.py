"""Trainer and engine share a physical GPU in one communicator.

What hangs
    Both ends of the update group, in its creation: often only one of them sees the error, the
    other waits.

How it shows
    `Duplicate GPU detected` with NCCL_DEBUG=WARN on either side.

What to do
    Give trainer and engine different devices in server mode, or use the colocated transport.

Not to be confused with
    A colocated run by CUDA IPC, where sharing is meant.

Source
    https://github.com/huggingface/trl/issues/3706
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quotes
from watchdog.situation import Situation

CAUSE_CLASS: Final = "config_invalid"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    said = situation.log(r"Duplicate GPU detected")
    if not said:
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed",
        "Two ranks of one communicator use the same GPU.",
        quotes(said, 2),
    )
