"""What the monitor hands over when a section is late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchdog.process_identity import ProcessIdentity
from watchdog.settings import Settings


@dataclass(frozen=True)
class StallContext:
    """One stall as the watchdog thread of one rank saw it.

    Attributes:
        section: Name of the section; `collective` for a blocking collective on its own.
        index: Number of the section among those of its name, from 1, the same on all ranks.
        waited_s: Time in it so far (s).
        deadline_s: The limit (s).
        deadline_reason: Where the limit came from, for the report.
        phase: Current phase, "" if none was marked; the op for a collective on its own.
        identity: This process.
        run_folder: `<dir>/<run>`; it may be missing or unwritable.
        incident_id: The same on all ranks, safe as a file name.
        settings: All settings.
        blackbox: Path of this rank's black box, `None` where it has no file.
        thread_id: `threading.get_ident` of the thread in the section.
        native_thread_id: Its kernel thread id.
        first_sample: What `on_suspicion` returned before the deadline, `None` without one.
        is_over: Says whether that very wait has ended, from within the process; `None` for who
            speaks from outside, where only the black box can tell.
    """

    section: str
    index: int
    waited_s: float
    deadline_s: float
    deadline_reason: str
    phase: str
    identity: ProcessIdentity
    run_folder: Path
    incident_id: str
    settings: Settings
    blackbox: Path | None = None
    thread_id: int = 0
    native_thread_id: int = 0
    first_sample: Any = None
    is_over: Callable[[], bool] | None = None
