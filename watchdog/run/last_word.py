"""The last line of a driver or launcher: that the run stalled, and where the report lies.

The ranks have said it before, but a driver collects what hundreds of them say, and what the
framework says of ranks that are gone comes after it.
"""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Callable
from pathlib import Path

from watchdog.guest.notices import notice
from watchdog.run.substitute import substitute_of

_MAX_BYTES = 50_000_000
_MAX_INCIDENTS = 3


def promise(run_folder: Path) -> None:
    """Say it when this process ends by itself, if there is anything to say by then."""
    atexit.register(_say, run_folder, os.getpid(), notice)


def lines(run_folder: Path) -> list[str]:
    """One line an incident of the run, the first ones; empty for a run without any."""
    folders = dict.fromkeys((run_folder, substitute_of(run_folder)))
    reports = sorted(path for each in folders for path in each.glob("incidents/*/report.json"))
    found = [_line(path) for path in reports[:_MAX_INCIDENTS]]
    if len(reports) > _MAX_INCIDENTS:
        found.append(f"{len(reports) - _MAX_INCIDENTS} more in {run_folder / 'incidents'}")
    return found


def _line(path: Path) -> str:
    incident = path.parent.name
    text = path.with_name("report.md")
    try:
        with path.open("rb") as file:
            report = json.loads(file.read(_MAX_BYTES))
        said = f"{report['state']}: {report['reason']} Report: {text}"
        became = {"recovered": " and went on", "aborted": " and was ended by the watchdog"}
        after = "".join(text for flag, text in became.items() if report.get(flag))
        return f"this run stalled in {incident}{after}: {said}"
    except (OSError, ValueError, KeyError, TypeError):
        return f"this run stalled in {incident}. Report: {text}"


def _say(run_folder: Path, pid: int, say: Callable[[str], None]) -> None:
    if os.getpid() != pid:  # a fork that ends
        return
    for line in lines(run_folder):
        say(line)
