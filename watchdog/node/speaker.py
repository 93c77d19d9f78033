"""Speaks for a node whose ranks cannot: a short-lived child of the sentinel.

Where a section of theirs is late, it goes through the incident as a rank would, from outside: same
id, same folder, same report. Where a rank is able to speak after all, it finds the lock taken or
the report written, and ends.

Where none is late, another node may still wait for them: it leaves word of what it sees.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

from watchdog.blackbox.reading import BlackBoxReading, read_blackbox
from watchdog.capture.flags import looked_at, relevant
from watchdog.errors import UnusableInputError
from watchdog.incident import first_sample, handle_stall, other_nodes, silent_node_evidence
from watchdog.process_identity import ProcessIdentity
from watchdog.run import flags_file
from watchdog.run.incident_ids import incident_id
from watchdog.sentinel.sentinel import LOST_S
from watchdog.sentinel.silence import ALL_SILENT
from watchdog.settings import Settings
from watchdog.timing.stall_context import StallContext

_BETWEEN_SAMPLES_S = 1.0
_LEAVING_WITHIN_S = 90


def context_of(box: Path, run_folder: Path, *, now_s: float | None = None) -> StallContext | None:
    """A rank as its black box tells it, in a section or not; `None` where the box tells nothing.

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
    if identity is None:
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


def report_stall(context: StallContext) -> None:
    """Go through the incident in the place of a rank that is late in its section."""
    # Two samples, as a rank has taken them by then. Its arguments cannot be asked for from
    # outside; those that the driver or launcher wrote can be read.
    flags = relevant(flags_file.read(os.environ), looked_at())
    context = replace(context, first_sample=replace(first_sample(context), flags=flags))
    second_at_s = time.monotonic() + _BETWEEN_SAMPLES_S
    # To connect takes a few seconds, in which another node may give this one up.
    other_nodes.announce(context)
    time.sleep(max(0.0, second_at_s - time.monotonic()))
    handle_stall(context)


def leave_word(context: StallContext) -> None:
    """Leave for the other nodes what is seen of this one, whose ranks all are silent."""
    signal.alarm(_LEAVING_WITHIN_S)
    if other_nodes.has_others(context):
        other_nodes.leave_word(context, silent_node_evidence(context))


def main(arguments: list[str]) -> None:
    """Speak for the rank whose box is given."""
    parser = argparse.ArgumentParser(prog="miles-watchdog-speaker")
    parser.add_argument("run_folder", type=Path)
    parser.add_argument("box", type=Path)
    parser.add_argument(ALL_SILENT, action="store_true", help="leave word of its node")
    parser.add_argument(LOST_S, type=float, default=0.0, help="time in which nobody could run (s)")
    options = parser.parse_args(arguments)
    context = context_of(options.box, options.run_folder)
    if context is None:
        return
    if options.all_silent:
        leave_word(context)
    elif context.section:
        report_stall(replace(context, waited_s=context.waited_s - options.lost_s))


if __name__ == "__main__":
    main(sys.argv[1:])
