"""The order to end, by which one rank's watchdog ends all ranks of its host."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from watchdog.exit_status import STALLED
from watchdog.sentinel.sentinel import ABORT as ORDER


def order(local: Path, others: Iterable[tuple[int, int]], on_behalf_of: str) -> None:
    """Tell the ranks of this host to end themselves, and their sentinel to see to it.

    Args:
        local: Folder of their black boxes.
        others: Further processes that have to end, by process id and start time (ticks).
        on_behalf_of: Whose watchdog ends the job and for what, as the ranks will say it:
            `rank 3 (weight_sync 12 is stalled)`.
    """
    told = {
        "by": os.getpid(),
        "status": STALLED,
        "others": list(others),
        "on_behalf_of": on_behalf_of,
    }
    text = json.dumps(told)
    unfinished = local / f".{ORDER}.{os.getpid()}"
    try:
        unfinished.write_text(text)
        os.replace(unfinished, local / ORDER)
    except OSError:
        unfinished.unlink(missing_ok=True)


def ordered_by(local: Path) -> str | None:
    """Whose watchdog told this process to end, and for what; `None` where none did.

    An order of this very process is none to it.
    """
    try:
        told = json.loads((local / ORDER).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or told.get("by") == os.getpid():
        return None
    return str(told.get("on_behalf_of") or f"pid {told.get('by')}")
