"""What every rank of a run would say, said by the first of them alone.

A driver collects what all ranks print: one line of each is hundreds for one stall.
"""

from __future__ import annotations

import os
from pathlib import Path

from watchdog.run.incident_ids import slug

NO_MORE_INCIDENTS = "no-more-incidents"
"""What is said of a run that has as many incidents as it may have."""


def is_first_to_say(what: str, place: Path) -> bool:
    """Whether no process has asked this before; it counts as said from then on.

    Where no mark can be left everybody is the first: better said often than never.

    Args:
        what: Short name of what is to be said.
        place: Folder that all who would say it share; it must exist.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        os.close(os.open(place / f".said-{slug(what)}", flags, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    return True
