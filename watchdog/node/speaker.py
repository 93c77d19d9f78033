"""Reports a stall for a node whose ranks cannot: a short-lived child of the sentinel.

It goes through the incident as a rank would, from outside: same id, same folder, same report.
Where a rank is able to speak after all, it finds the lock taken or the report written, and ends.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

from watchdog.blackbox.reading import BlackBoxReading, read_blackbox
from watchdog.capture.flags import looked_at, relevant
from watchdog.errors import UnusableInputError
from watchdog.incident import first_sample, handle_stall
from watchdog.process_identity import ProcessIdentity
from watchdog.run import flags_file
from watchdog.run.incident_ids import incident_id
from watchdog.settings import Settings
from watchdog.timing.stall_context import StallContext

_BETWEEN_SAMPLES_S = 1.0


def stall_of(box: Path, run_folder: Path, *, now_s: float | None = None) -> StallContext | None:
    """The stall of a rank as its black box tells it; `None` where it is in no section (any more).

    Args:
        box: Its black box.
        run_folder: `<dir>/<run>`.
        now_s: Monotonic time of this host (s), the present by default.
    """
    now_s = time.monotonic() if now_s is None else now_s
    try:
        reading = read_blackbox(box, with_events=False)
    except UnusableInputError:
        return None
    identity = _identity(reading)
    if identity is None or not reading.section:
        return None
    return StallContext(
        section=reading.section,
        index=reading.section_index,
        waited_s=now_s - reading.section_began_s,
        deadline_s=reading.deadline_s,
        deadline_reason="as its black box says",
        phase=reading.phase,
        identity=identity,
        run_folder=run_folder,
        incident_id=incident_id(reading.section, reading.section_index),
        settings=Settings.from_environ(os.environ),
        blackbox=box,
        native_thread_id=reading.section_tid,
    )


def _identity(reading: BlackBoxReading) -> ProcessIdentity | None:
    names = {each.name for each in fields(ProcessIdentity)}
    try:
        return ProcessIdentity(**{k: v for k, v in reading.identity.items() if k in names})
    except TypeError:
        return None


def main(arguments: list[str]) -> None:
    """Speak for the rank whose box is given: `<run folder> <box>`."""
    run_folder, box = map(Path, arguments)
    context = stall_of(box, run_folder)
    if context is not None:
        # Two samples, as a rank has taken them by then. Its arguments cannot be asked for from
        # outside; those that the driver or launcher wrote can be read.
        flags = relevant(flags_file.read(os.environ), looked_at())
        context = replace(context, first_sample=replace(first_sample(context), flags=flags))
        time.sleep(_BETWEEN_SAMPLES_S)
        handle_stall(context)


if __name__ == "__main__":
    main(sys.argv[1:])
