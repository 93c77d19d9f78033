"""The watchdog's own threads by a name that is seen from outside: nothing of the job."""

from __future__ import annotations

import contextlib
import threading

NAME = "weight-sync-wd"
"""What the kernel calls each of them (`comm`, at most 15 characters)."""


def mark_this_thread() -> None:
    """Give the calling thread that name. What it reads and writes is not the job's doing."""
    with contextlib.suppress(OSError), open(_comm(), "w") as file:
        file.write(NAME)


def _comm() -> str:
    return f"/proc/self/task/{threading.get_native_id()}/comm"
