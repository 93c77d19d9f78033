"""What `diagnose` and `attach` do with their answer: print it in one format, write it in all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from watchdog.errors import WatchdogError
from watchdog.exit_status import UNUSABLE

if TYPE_CHECKING:
    from watchdog.evidence import Evidence
    from watchdog.findings import Diagnosis


def answer_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say in which format the answer is printed, and where it is kept."""
    options = (
        click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON."),
        click.option("--markdown", "as_markdown", is_flag=True, help="Print it as Markdown."),
        click.option(
            "--output",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="Also write report.json, report.md and evidence.json there.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


class UnwritableOutputError(WatchdogError):
    """What was asked for has no place. The message names the place and says why."""

    help_text = "Pass another place, or make room there."
    exit_code = UNUSABLE


def tell(evidence: Evidence, diagnosis: Diagnosis, as_json: bool, as_markdown: bool) -> None:
    """Print the report: for the terminal, or in the format that was asked for."""
    from watchdog.reports import json_report, markdown, terminal

    if as_json:
        click.echo(json_report.render(evidence, diagnosis, None), nl=False)
    elif as_markdown:
        click.echo(markdown.render(evidence, diagnosis, None), nl=False)
    else:
        terminal.print_report(evidence, diagnosis, None)


def write(evidence: Evidence, diagnosis: Diagnosis, folder: Path) -> None:
    """Write report.json, report.md and evidence.json, and say where.

    Raises:
        UnwritableOutputError: The folder cannot be written to.
    """
    from watchdog.reports import json_report, markdown
    from watchdog.serialization import evidence_to_json

    texts = {
        "report.json": json_report.render(evidence, diagnosis, None),
        "report.md": markdown.render(evidence, diagnosis, None),
        "evidence.json": evidence_to_json(evidence),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UnwritableOutputError(f"{folder}: cannot be written: {error.strerror}") from error
    click.echo(f"written: {', '.join(str(folder / name) for name in texts)}", err=True)
