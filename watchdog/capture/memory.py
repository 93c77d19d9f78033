"""Where the weights are: resident, backed up, or paused without a copy.

Read from the ledger that was kept as regions were paused and resumed. No tensor is touched: the
read of one may be what hangs.
"""

from __future__ import annotations

import importlib

from watchdog.capture.target import Part, Target
from watchdog.evidence import MemoryRegion

NAME = "memory"


def collect(target: Target) -> Part:
    """The regions of this process's pausable memory; of another process nothing."""
    if not target.is_self:
        return Part()
    regions: tuple[MemoryRegion, ...] = tuple(
        importlib.import_module("watchdog.memory_ledger").snapshot()
    )
    return Part(memory=regions)
