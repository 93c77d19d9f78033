"""`miles-watchdog check`: what a launch is known to hang of, before it runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from watchdog.counting import counted
from watchdog.exit_status import FAILED

if TYPE_CHECKING:
    from watchdog.static_checks.hazards import Hazard
    from watchdog.static_checks.launch import Launch

_COLUMNS = 98
_COLOURS = {"certain": "red", "likely": "yellow", "suspect": "cyan"}


@click.command("check", context_settings={"ignore_unknown_options": True})
@click.argument("launch", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--args-json",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Resolved arguments or configuration as JSON.",
)
@click.option(
    "--env-file",
    "env_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Variables of the run, NAME=value lines or Ray's runtime environment; may be repeated.",
)
@click.option(
    "--installed/--no-installed",
    default=True,
    show_default=True,
    help="Take packages, environment, network and mounts of this machine for those of the run.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with 1 on a hazard of `likely` or above; a `suspect` one passes.",
)
@click.option("--strict-suspect", is_flag=True, help="Exit with 1 on any hazard.")
@click.option("--json", "as_json", is_flag=True, help="Print the hazards as JSON.")
def command(
    launch: tuple[str, ...],
    args_json: Path | None,
    env_files: tuple[Path, ...],
    installed: bool,
    strict: bool,
    strict_suspect: bool,
    as_json: bool,
) -> None:
    """Say what in a launch command is known to hang, before it runs.

    LAUNCH is a command line behind `--`, or a file: a launch script, a configuration. Nothing is
    started. Each hazard comes with its consequence, a word for its confidence, what decides
    whether it happens, and the public report it is known from.

    \b
      certain  fails whenever the run comes to that point
      likely   known to hang in this configuration, nothing seen that prevents it
      suspect  hangs in some configurations like this one and runs in others

    \b
    Exit status:
      0  done, whatever was found
      1  with --strict: a hazard of `likely` or above; with --strict-suspect: any hazard
      2  the input was unusable
    """  # noqa: D301 - click reads the character, not the two of a raw string
    if not launch and args_json is None and not env_files:
        raise click.UsageError("give a launch command behind `--`, a script, or --args-json")
    from watchdog.static_checks.coverage import coverage_of
    from watchdog.static_checks.hazards import hazards_of
    from watchdog.static_checks.reading import read_launch

    read = read_launch(launch, args_json=args_json, env_files=env_files, installed=installed)
    hazards = hazards_of(read)
    if as_json:
        coverage = coverage_of(read)
        told = {
            "schema_version": 1,
            "hazards": [asdict(hazard) for hazard in hazards],
            "flags": {"known": coverage.known, "unknown": coverage.unknown},
        }
        click.echo(json.dumps(told, indent=1))
    else:
        _print(hazards)
        _print_coverage(read, hazards)
        if strict and not strict_suspect and any(h.confidence == "suspect" for h in hazards):
            click.echo(
                "--strict lets what is `suspect` pass, since such runs also work: read `decides` "
                "above, or use --strict-suspect"
            )
    failing = hazards if strict_suspect else [h for h in hazards if h.confidence != "suspect"]
    sys.exit(FAILED if failing and (strict or strict_suspect) else 0)


def _print(hazards: Sequence[Hazard]) -> None:
    from watchdog.reports.printable import one_line

    for hazard in hazards:
        word = click.style(f"{hazard.confidence:<8}", fg=_COLOURS[hazard.confidence], bold=True)
        click.echo(f"{word} {hazard.check}: {one_line(hazard.title)}")
        _line("seen", "; ".join(hazard.facts))
        _line("can", hazard.consequence)
        _line("decides", hazard.decides)
        _line("do", hazard.remedy)
        known = f" (`miles-watchdog rules {hazard.rule}`)" if hazard.rule else ""
        _line("from", hazard.source + known)
        click.echo()


def _print_coverage(launch: Launch, hazards: Sequence[Hazard]) -> None:
    """Say what was looked at: that nothing was found is worth as much as was understood."""
    from watchdog.reports.printable import one_line
    from watchdog.static_checks.coverage import coverage_of

    coverage = coverage_of(launch)
    for given, meant in coverage.misspelt.items():
        shown = meant.replace("_", "-")
        click.echo(one_line(f"--{given.replace('_', '-')} is no flag known here: --{shown}?"))
    num_flags = len(launch.evidence.flags)
    found = counted(len(hazards), "hazard") if hazards else "no hazard"
    variables = counted(len(launch.evidence.environment), "variable")
    click.echo(f"{found} known in {counted(num_flags, 'flag')} and {variables}")
    if not num_flags:
        click.echo("No flag of a training run was recognised: this says nothing on it.")
        return
    if not coverage.known:
        click.echo("None of the flags is known to any check: this says nothing on them.")
    elif coverage.unknown:
        click.echo(
            f"{len(coverage.known)} of the flags bear on a check; nothing is known of the other "
            f"{len(coverage.unknown)}."
        )


def _line(label: str, text: str) -> None:
    from watchdog.reports.printable import one_line
    from watchdog.reports.wrapping import wrapped

    head = f"  {label:<8}"
    for line in wrapped(one_line(text, 1000), _COLUMNS - len(head)):
        click.echo(head + line)
        head = " " * len(head)
