"""`miles-watchdog demo`: see a hang, and the watchdog's word on it."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import signal
import sys
import time
from collections.abc import Collection
from pathlib import Path
from types import FrameType
from typing import Any

import click

from watchdog.demo.job import Job, demo_environ, train_argv
from watchdog.demo.outcome import Outcome
from watchdog.demo.progress import progress
from watchdog.demo.scenarios import SCENARIOS, Scenario
from watchdog.errors import WatchdogError
from watchdog.exit_status import FAILED

_SETTINGS = "MILES_WATCHDOG=1 MILES_WATCHDOG_STALL_AFTER=5"
_ENDS = "MILES_WATCHDOG_ABORT_AFTER=2"
_TIMEOUT_S = 120.0
_SILENCE_S = 5.0
_GRACE_S = 8.0
_WATCHDOG = "[miles-watchdog]"
_ENDING = f"{_WATCHDOG} ending rank"
# What the watchdog says, one line a step, and the words of an error; not its traceback.
_SHOWN = re.compile(r"\[miles-watchdog\]|^all ranks are up|^rollout \d|^done:|Error: |What to do: ")


class DemoUnavailableError(WatchdogError):
    """The bundled training stack or torch cannot be imported; the message says which."""

    help_text = (
        "The demo trains with the `miles` of this project's source tree, which the wheel does "
        "not carry. In a clone of it: .venv/bin/pip install torch==2.13.0 -e '.[miles]'"
    )
    exit_code = 2


class UnwritableFolderError(WatchdogError):
    """The demo's output has no place. The message names the folder and says why."""

    help_text = "Pass another folder: miles-watchdog demo --output DIR"
    exit_code = 2


@click.command("demo")
@click.argument("name", required=False, type=click.Choice(list(SCENARIOS)))
@click.option("--list", "lists", is_flag=True, help="List the scenarios and end.")
@click.option(
    "--ranks",
    type=click.IntRange(2, 16),
    default=4,
    show_default=True,
    help="Number of trainer ranks.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Leave the hung job alone, to look at it from another terminal, until Ctrl-C.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for reports and log; a new one under ./watchdog-runs by default.",
)
@click.option("--verbose", is_flag=True, help="Show every line that the job prints.")
def command(
    name: str | None, lists: bool, ranks: int, keep: bool, output: Path | None, verbose: bool
) -> None:
    """Run a training job that hangs, and watch the watchdog catch it.

    NAME is a scenario, the first of `--list` by default. Exit status: 0 when what was to be
    shown happened, 1 when something else did, 2 when the demo cannot run here.
    """
    if lists:
        for each, scenario in SCENARIOS.items():
            click.echo(f"{each:<14} {scenario.title}")
        return
    _check_importable()
    chosen = name or next(iter(SCENARIOS))
    folder = output or Path("watchdog-runs") / f"demo-{chosen}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableFolderError(f"{folder}: {error.strerror or error}") from error
    outcome = _run(SCENARIOS[chosen], ranks, folder.absolute(), keep=keep, verbose=verbose)
    missed = SCENARIOS[chosen].expectation(ranks).missed(outcome)
    _conclude(folder, missed)
    if missed:
        raise click.exceptions.Exit(FAILED)


def _check_importable() -> None:
    for module in ("torch", "miles.train", "miles.plugins.native_lora"):
        try:
            found = importlib.util.find_spec(module) is not None
        except Exception:  # somebody else's `miles` may do anything when it is imported
            found = False
        if not found:
            raise DemoUnavailableError(f"{module} cannot be imported")


def _run(scenario: Scenario, ranks: int, folder: Path, *, keep: bool, verbose: bool) -> Outcome:
    flags = f"--actor-num-gpus-per-node {ranks} {scenario.flags(ranks)}"
    click.echo(scenario.title)
    click.echo(
        click.style(
            f"$ {_SETTINGS if keep else f'{_SETTINGS} {_ENDS}'} {shlex.quote(sys.executable)}"
            f" -m miles.train {flags}",
            bold=True,
        )
    )
    if keep:
        click.echo(
            f"The job is left alone once it hangs: `{_program()} attach` in another terminal looks "
            "at it; Ctrl-C here ends it."
        )
    # Whoever ends the demo ends its job: the way out is through the job's `__exit__`.
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _exit_on_signal)
    known = frozenset(_report_files(folder))
    started_s = time.monotonic()
    environ = demo_environ(str(folder), ends_job=not keep)
    lines: list[str] = []
    with (folder / "job.log").open("w", encoding="utf-8") as log:
        with Job(train_argv(shlex.split(flags)), environ) as job:
            try:
                _follow(job, scenario, started_s, lines, verbose=verbose, keep=keep)
            except KeyboardInterrupt:
                if not keep:
                    raise
            status = job.exit_status
        log.write("\n".join(lines) + "\n")
    reports = tuple(_reports(folder, known))
    return Outcome(status, "\n".join(lines), reports, _num_syncs(folder))


def _exit_on_signal(signum: int, frame: FrameType | None) -> None:
    sys.exit(128 + signum)


def _follow(
    job: Job, scenario: Scenario, started_s: float, lines: list[str], *, verbose: bool, keep: bool
) -> None:
    """Show what is worth it as it comes, and that time goes by where nothing comes."""
    silent_since_s = started_s
    ends_at_s = given_up_at_s = started_s + (86_400 if keep else _TIMEOUT_S)
    todo = scenario.disturbance
    doing = ""
    for line in job.lines(ends_at_s):
        now_s = time.monotonic()
        if now_s > ends_at_s:
            return
        if line is not None and _ENDING in line and not keep:
            # Some launchers wait long for a rank that cannot hear them; we need not.
            ends_at_s = min(ends_at_s, now_s + _GRACE_S)
        if line is not None:
            lines.append(line)
            if todo and line.startswith(todo.after):
                pid = job.signal(todo.signum, todo.command_words, todo.environ)
                _show(now_s - started_s, f"[demo] {todo.signum.name} to pid {pid}")
                todo = None
        # What ranks cry while they are being ended is no news.
        is_ending = ends_at_s < given_up_at_s and _WATCHDOG not in (line or "")
        if line is not None and (verbose or (_SHOWN.search(line) and not is_ending)):
            _show(now_s - started_s, line)
            silent_since_s = now_s
        elif now_s - silent_since_s >= _SILENCE_S:
            silent_since_s = now_s
            before, doing = doing, progress(job.commands(), lines)
            if not (keep and _WATCHDOG in "\n".join(lines)) or doing != before:
                _show(now_s - started_s, "…" if doing == before else f"… {doing}")


def _show(elapsed_s: float, line: str) -> None:
    from watchdog.reports.printable import one_line, printable

    is_watchdog = _WATCHDOG in line
    text = printable(line) if is_watchdog else one_line(line, 160)
    click.echo(f"{elapsed_s:5.1f} s  " + click.style(text, bold=is_watchdog, dim=not is_watchdog))


def _report_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/incidents/*/report.json"), key=lambda p: p.stat().st_mtime)


def _reports(folder: Path, known: Collection[Path]) -> list[dict[str, Any]]:
    """Those of this run, newest first; what lay in the folder before is another run's."""
    files = [file for file in _report_files(folder) if file not in known]
    return [json.loads(file.read_text()) for file in reversed(files)]


def _num_syncs(folder: Path) -> int:
    return sum(len(file.read_text().splitlines()) for file in folder.glob("*/syncs.jsonl"))


def _conclude(folder: Path, missed: str) -> None:
    click.echo()
    if missed:
        click.echo(click.style(f"Not as expected: {missed}.", fg="red"))
    else:
        click.echo(click.style("As expected.", fg="green"))
    for incident in sorted(folder.glob("*/incidents/*/report.md")):
        click.echo(f"Report:       {incident}")
        click.echo(f"Read it here: {_program()} report {shlex.quote(str(incident.parent))}")
    click.echo(f"Job's output: {folder / 'job.log'}")


def _program() -> str:
    """This program as it was called: a newcomer's environment is rarely on the PATH."""
    called_as = sys.argv[0]
    return shlex.quote(called_as) if Path(called_as).name == "miles-watchdog" else "miles-watchdog"
