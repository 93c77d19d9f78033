"""What a read of pausable memory would meet: written down as regions are paused and resumed.

The memory saver cannot be asked: it has no query for its state, and asking it for the host copy
of a paused tensor that has none ends the process. Where `miles` keeps a ledger of its own, that
one is read.

Source:
    torch_memory_saver, `csrc/core.cpp`: `get_cpu_backup_pointer` calls `exit(1)`.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from watchdog.evidence import MemoryRegion, Residency

# Region tag to whether it has a host copy while it is paused; and the tags that are paused now.
_regions: dict[str, bool] = {}
_paused: set[str] = set()
DEFAULT_TAG = "default"


def region_used(tag: str, has_backup: bool) -> None:
    """Note that memory is allocated under a tag. One region without a copy decides the tag."""
    _regions[tag] = _regions.get(tag, True) and has_backup


def paused(tag: str | None) -> None:
    """Note that a tag, or with `None` every tag, has been paused."""
    _note_default()
    _paused.update([tag] if tag is not None else list(_regions))


def resumed(tag: str | None) -> None:
    """Note that a tag, or with `None` every tag, has been resumed."""
    _paused.difference_update([tag] if tag is not None else list(_paused))


def snapshot() -> tuple[MemoryRegion, ...]:
    """Every region that is known, by tag. Reads no tensor and takes no lock."""
    residency: Any = sys.modules.get("miles.utils.residency")
    if residency is not None and hasattr(residency, "residency_snapshot"):
        regions = residency.residency_snapshot()
        return tuple(_region_of(tag, regions[tag]) for tag in sorted(regions))
    return tuple(
        MemoryRegion(tag, _state(tag in _paused, has_backup))
        for tag, has_backup in sorted(_regions.items())
    )


def _note_default() -> None:
    if os.environ.get("TMS_INIT_ENABLE") == "1":
        backup = os.environ.get("TMS_INIT_ENABLE_CPU_BACKUP") == "1"
        _regions.setdefault(DEFAULT_TAG, backup)


def _region_of(tag: str, region: dict[str, Any]) -> MemoryRegion:
    on_host = bool(region.get("has_backup")) and region.get("backup_target") == "cpu"
    return MemoryRegion(
        tag,
        _state(bool(region.get("paused")), on_host),
        region.get("bytes"),
        region.get("num_tensors"),
        tuple(region.get("first_tensors") or ()),
    )


def _state(is_paused: bool, has_backup: bool) -> Residency:
    if not is_paused:
        return "resident"
    return "backed_up" if has_backup else "paused_without_copy"
