"""Where the weights are: resident, backed up, or paused without a copy.

Read from the ledger that was kept as regions were paused and resumed. No tensor is touched: the
read of one may be what hangs.
"""

from __future__ import annotations

from watchdog.capture.target import Part, Target
from watchdog.recording import memory_ledger

NAME = "memory"


def collect(target: Target) -> Part:
    """The regions of this process's pausable memory; of another process nothing."""
    if not target.is_self:
        return Part()
    return Part(memory=memory_ledger.snapshot())
