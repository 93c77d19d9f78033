"""`miles-watchdog settings`: the knobs, as this environment sets them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from watchdog.settings import Knob, Settings


@click.command("settings")
@click.option("--json", "as_json", is_flag=True, help="One JSON list, for scripts.")
@click.option("--markdown", is_flag=True, help="The README's table of settings and defaults.")
def command(as_json: bool, markdown: bool) -> None:
    """Show every setting, its value here, and where the value comes from.

    All of them are environment variables that every process of the run must have. What is
    wrong with a variable is said on stderr.
    """
    from watchdog.settings import Settings, knobs

    settings = Settings.from_environ(os.environ)
    if markdown:
        click.echo(settings_table(knobs()), nl=False)
        return
    if as_json:
        click.echo(json.dumps([asdict(knob) for knob in knobs(settings)], indent=1))
    else:
        _print_terminal(knobs(settings))
    for warning in (*settings.warnings, *_not_here(settings)):
        click.echo(f"Warning: {warning}", err=True)


def _not_here(settings: Settings) -> Iterator[str]:
    """What is set well and cannot be had on this machine."""
    from watchdog.incident.on_stall import cannot_be_run
    from watchdog.run.substitute import refusal, substitute_root

    if why := refusal(Path(settings.dir)):
        yield (
            f"MILES_WATCHDOG_DIR={settings.dir[:80]!r} cannot be written: {why}; incidents go to "
            f"{substitute_root()} instead"
        )
    if why := cannot_be_run(settings.on_stall):
        yield f"MILES_WATCHDOG_ON_STALL cannot be run: {why}"


def settings_table(knobs: Iterable[Knob]) -> str:
    """Variable, default with its unit, and meaning, as a markdown table."""
    rows = [f"| `{k.variable}` | {_with_unit(k.default, k.unit)} | {k.help} |" for k in knobs]
    return "\n".join(["| variable | default | meaning |", "| --- | --- | --- |", *rows]) + "\n"


def _print_terminal(knobs: Iterable[Knob]) -> None:
    from watchdog.reports.printable import one_line

    for knob in knobs:
        value = one_line(_with_unit(knob.value, knob.unit))
        click.echo(click.style(f"{knob.variable}={value}", bold=True) + f"  ({knob.origin})")
        click.echo(click.wrap_text(knob.help, 96, "    ", "    "))


def _with_unit(value: str, unit: str) -> str:
    is_number = value.replace(".", "", 1).isdigit()
    return f"{value} {unit}" if unit and is_number else value
