"""`miles-watchdog diagnose`: the verdict on files from somebody else's hang."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from watchdog.cli.telling import answer_options, tell, write
from watchdog.errors import UnusableInputError
from watchdog.exit_status import NO_CAUSE

if TYPE_CHECKING:
    from watchdog.intake.sources import Progress

# Below this the reading is over before a bar can be seen.
BAR_FROM_BYTES = 32 * 2**20


@click.command("diagnose")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@answer_options
def command(paths: tuple[Path, ...], as_json: bool, as_markdown: bool, output: Path | None) -> None:
    """Say who holds a job up and why, from files of any name.

    PATHS are files, folders and archives: py-spy, gdb and faulthandler dumps, logs of trainer
    and engines, launch scripts and configurations, flight-recorder dumps, output of ps, dmesg,
    nvidia-smi, pip list … What each is, is told by its content. Nothing is executed, nothing is
    unpacked to disk, nothing leaves the machine. A path `-` is standard input.

    \b
    Exit status:
      0  a cause was named
      3  none could be (the report says what to collect next)
      2  the input was unusable (standard error says which file and why)
    """  # noqa: D301 - click reads the character, not the two of a raw string
    if as_json and as_markdown:
        raise click.UsageError("--json and --markdown exclude each other")
    from watchdog.diagnosis import diagnose
    from watchdog.intake import evidence_from_paths

    with _standard_input(paths) as given, _progress_bar() as progress:
        evidence = evidence_from_paths(given, progress)
    diagnosis = diagnose(evidence)
    tell(evidence, diagnosis, as_json, as_markdown)
    if output is not None:
        write(evidence, diagnosis, output)
    sys.exit(0 if diagnosis.causes else NO_CAUSE)


@contextlib.contextmanager
def _standard_input(paths: tuple[Path, ...]) -> Iterator[list[Path]]:
    """The paths with standard input, where it is among them, as a file that can be sought in."""
    wanted = {Path("-"), Path("/dev/stdin")}
    if not wanted & set(paths):
        yield list(paths)
        return
    with tempfile.TemporaryDirectory(prefix="miles-watchdog-") as folder:
        file = Path(folder) / "standard-input"
        with file.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        try:
            yield [file if path in wanted else path for path in paths]
        except UnusableInputError as error:
            raise UnusableInputError(str(error).replace(str(file), "standard input")) from error


@contextlib.contextmanager
def _progress_bar() -> Iterator[Progress | None]:
    """A bar on standard error for long inputs, nothing where nobody looks at it."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("reading {task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, visible=False)

        def report(name: str, done_bytes: int, total_bytes: int) -> None:
            bar.update(
                task,
                description=name[-48:],
                completed=done_bytes,
                total=total_bytes,
                visible=total_bytes >= BAR_FROM_BYTES,
            )

        yield report
