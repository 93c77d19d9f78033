"""The order to end, by which one rank's watchdog ends all ranks of its host."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from watchdog.exit_status import STALLED
from watchdog.sentinel.sentinel import ABORT as ORDER


def order(local: Path, others: Iterable[tuple[int, int]]) -> None:
    """Tell the ranks of this host to end themselves, and their sentinel to see to it.

    Args:
        local: Folder of their black boxes.
        others: Further processes that have to end, by process id and start time (ticks).
    """
    text = json.dumps({"by": os.getpid(), "status": STALLED, "others": list(others)})
    unfinished = local / f".{ORDER}.{os.getpid()}"
    try:
        unfinished.write_text(text)
        os.replace(unfinished, local / ORDER)
    except OSError:
        unfinished.unlink(missing_ok=True)


def is_ordered(local: Path) -> bool:
    """Whether this process was told to end, by another one."""
    try:
        told = json.loads((local / ORDER).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(told, dict) and told.get("by") != os.getpid()
