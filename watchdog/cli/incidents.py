"""`miles-watchdog incidents`: what lies in a folder of runs."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from watchdog.cli.incident_folder import Incident, Run, runs_below
from watchdog.reports.wording import took_s
from watchdog.run.stall_ends import STALL_ENDS


@click.command("incidents")
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON list, for scripts.")
def command(folder: Path | None, as_json: bool) -> None:
    """List the incidents below a folder, newest first.

    FOLDER holds runs, or is one run; without it, MILES_WATCHDOG_DIR or ./watchdog-runs is
    read. Runs without an incident are listed with the number of syncs that they ended.
    """
    runs = runs_below(folder if folder is not None else _default_folder())
    if as_json:
        click.echo(json.dumps([_data(run) for run in runs], indent=1))
        return
    if not runs:
        click.echo("no runs here")
    now_s = time.time()
    for run in runs:
        for line in _lines(run, now_s):
            click.echo(line)


def _default_folder() -> Path:
    import os

    return Path(os.environ.get("MILES_WATCHDOG_DIR") or "watchdog-runs")


def _lines(run: Run, now_s: float) -> list[str]:
    from watchdog.reports.printable import one_line

    count = len(run.incidents)
    words = "no incident" if not count else f"{count} incident{'s' if count > 1 else ''}"
    lines = [one_line(f"{run.folder.name}: {words}, {run.num_syncs} syncs ended")]
    for incident in run.incidents:
        lines.append("  " + one_line(_sentence(incident, now_s)))
        lines.append("    " + one_line(str(incident.folder)))
    return lines


def _sentence(incident: Incident, now_s: float) -> str:
    confidence = incident.cause.rpartition(" ")[2]
    cause = f"; {incident.rule}, {confidence}" if incident.rule else ""
    return f"{age(now_s - (incident.info.started_at_s or now_s))} ago: {incident.headline}{cause}"


def age(age_s: float) -> str:
    """`12 s`, `5 min`, `3 h`, `2 d`; a time in the future counts as now."""
    value = max(0.0, age_s)
    for unit, limit_s, divisor in (("s", 120, 1), ("min", 7200, 60), ("h", 172_800, 3600)):
        if value < limit_s:
            return f"{value / divisor:.0f} {unit}"
    return f"{value / 86_400:.0f} d"


def _data(run: Run) -> dict[str, Any]:
    return {
        "run": run.folder.name,
        "folder": str(run.folder.absolute()),
        "num_syncs": run.num_syncs,
        "incidents": [
            {
                **asdict(item.info),
                "state": item.state,
                **{one.flag: took_s(item.info, one) is not None for one in STALL_ENDS},
                "cause": item.cause,
                "rule": item.rule,
                "headline": item.headline,
            }
            for item in run.incidents
        ],
    }
