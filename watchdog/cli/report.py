"""`miles-watchdog report`: an incident told again."""

from __future__ import annotations

from pathlib import Path

import click

# Not read from the table of formats: completion and `--help` need no report module.
FORMATS = ("terminal", "markdown", "json", "summary", "chat")


@click.command("report")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="terminal",
    show_default=True,
    help="How to tell it.",
)
@click.option(
    "--diff",
    "other",
    type=click.Path(exists=True, path_type=Path),
    help="Another incident: print what differs from PATH to it, nothing else.",
)
def command(path: Path, format_name: str, other: Path | None) -> None:
    """Render an incident again, diagnosed with the rules of this version.

    PATH is an incident's folder or its evidence.json; `miles-watchdog incidents` lists them.
    """
    from watchdog.cli.incident_folder import load_incident
    from watchdog.diagnosis import diagnose
    from watchdog.reports import REPORTS, comparison, terminal

    if other is not None and format_name != "terminal":
        raise click.UsageError("--diff has one format: leave --format out")
    evidence, incident = load_incident(path)
    diagnosis = diagnose(evidence)
    if other is not None:
        other_evidence, _ = load_incident(other)
        second = diagnose(other_evidence)
        click.echo(comparison.render((evidence, diagnosis), (other_evidence, second)), nl=False)
    elif format_name == "terminal":
        terminal.print_report(evidence, diagnosis, incident)
    else:
        click.echo(REPORTS[format_name].render(evidence, diagnosis, incident), nl=False)
