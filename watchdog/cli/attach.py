"""`miles-watchdog attach`: the verdict on a job that hangs now, on this node."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from watchdog.cli.telling import answer_options, tell, write
from watchdog.exit_status import NO_CAUSE

if TYPE_CHECKING:
    from watchdog.evidence import Evidence

_REFUSED = ("refused", "permission denied", "not permitted")


@click.command("attach")
@click.option(
    "--pid", "pids", type=int, multiple=True, help="A process of the job; may be repeated."
)
@click.option(
    "--match",
    default="",
    metavar="TEXT",
    help="Part of the job's name (run, Ray job, rendezvous) or of a command line of it.",
)
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.5, max=3600),
    default=3.0,
    show_default=True,
    help="Seconds between the two samples.",
)
@click.option(
    "--native/--no-native",
    default=True,
    show_default=True,
    help="Read C and C++ frames of the suspects, four at most; pauses each for a moment.",
)
@answer_options
def command(
    pids: tuple[int, ...],
    match: str,
    interval_s: float,
    native: bool,
    as_json: bool,
    as_markdown: bool,
    output: Path | None,
) -> None:
    """Say who holds up a job that hangs now on this node, and why.

    Finds ranks, Ray workers, engines, driver and launcher of the job, looks at all of them twice
    (stacks, process state, sockets, environment, open logs), and prints the diagnosis. The
    watchdog need not be on. Nothing is stopped or changed; only the suspects are paused for a
    fraction of a second each, to read their native frames.

    A job on several nodes: run it on each with --output, then
    `miles-watchdog diagnose DIR1 DIR2 …` gives the verdict of the whole job.

    \b
    Exit status:
      0  a cause was named
      3  none could be (the report says what to collect next)
      2  no job was found, or several (standard error says which)
    """  # noqa: D301 - click reads the character, not the two of a raw string
    if as_json and as_markdown:
        raise click.UsageError("--json and --markdown exclude each other")
    from watchdog.attach.observation import Seams, Wanted, observe
    from watchdog.reports import chat_line

    wanted = Wanted(frozenset(pids), match, interval_s, native)
    evidence, diagnosis = observe(wanted, Seams(say=_progress))
    tell(evidence, diagnosis, as_json, as_markdown)
    if output is not None:
        write(evidence, diagnosis, output)
    _warn_of_refusals(evidence)
    is_machine_readable = as_json or as_markdown
    click.echo("\nOne line to paste into a chat:", err=is_machine_readable)
    click.echo(chat_line.render(evidence, diagnosis, None), nl=False, err=is_machine_readable)
    sys.exit(0 if diagnosis.causes else NO_CAUSE)


def _progress(text: str) -> None:
    click.echo(f"{text} …", err=True)


def _warn_of_refusals(evidence: Evidence) -> None:
    """Say on stderr what the kernel did not let us see: it decides what the verdict is worth."""
    refused: dict[str, list[str]] = {}
    remedies = {}
    for process in evidence.processes:
        for gap in process.gaps:
            if "stacks" in gap.what and any(word in gap.why.lower() for word in _REFUSED):
                refused.setdefault(gap.remedy, []).append(process.key)
                remedies[gap.remedy] = gap.why
    for remedy, keys in refused.items():
        click.echo(f"Stacks of {', '.join(keys[:12])} were refused: {remedies[remedy]}", err=True)
        if remedy:
            click.echo(f"To see them: {remedy}", err=True)
