"""Launch commands, scripts and arguments into a `Launch`; read with the parsers of `diagnose`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from watchdog.capture import environment, versions
from watchdog.discovery.processes import Seen
from watchdog.discovery.roles import is_engine_program
from watchdog.errors import UnusableInputError
from watchdog.evidence import Evidence
from watchdog.intake import BLOCKS, DOCUMENTS
from watchdog.intake.archives import archive_kind
from watchdog.intake.blocks import Context
from watchdog.intake.documents import json_arguments, launch_script
from watchdog.intake.documents.runtime_env import variables_of
from watchdog.intake.parts import Parts
from watchdog.intake.reading import Reader
from watchdog.intake.shell_text import read_script
from watchdog.intake.sources import open_regular, regular_text, sources_of
from watchdog.intake.text import encoding_of, looks_binary
from watchdog.masking import mask_mapping
from watchdog.static_checks.host import this_host
from watchdog.static_checks.launch import Launch, Program

_HEAD_BYTES = 4096
_MAX_SOURCE_BYTES = 2**20
_MAX_INPUT_BYTES = 16 * 2**20


def read_launch(
    words: Sequence[str],
    *,
    args_json: Path | None = None,
    env_files: Sequence[Path] = (),
    installed: bool = True,
    environ: Mapping[str, str] | None = None,
) -> Launch:
    """Everything that is known of a launch.

    Args:
        words: A command line, or one file that holds commands or a configuration; may be empty
            where `args_json` is given.
        args_json: A file of resolved arguments.
        env_files: Files of `NAME=value` lines, or runtime environments of Ray.
        installed: Whether the run will start on this machine, in this environment.
        environ: What the run would inherit; the caller's own by default.

    Raises:
        UnusableInputError: A file cannot be read, or holds no arguments; a single word is no
            file here and so no launch.
    """
    _refuse_what_is_no_launch(words)
    parts, text = Parts(), ""
    inherited = environment.relevant(os.environ if environ is None else environ)
    for path in env_files:
        parts.add_variables(_variables(path))
    if len(words) == 1 and Path(words[0]).is_file():
        text = _file_text(Path(words[0]))
        _read_file(Path(words[0]), parts)
    elif words:
        text = shlex.join(words)
        _read_command(text, parts)
        for script in _scripts(words):
            text += "\n" + _file_text(script)
            _read_file(script, parts)
    if args_json is not None:
        _read_arguments(args_json, parts)
    if installed:
        parts.add_variables(inherited)
        parts.add_versions(versions.installed())
    evidence = Evidence(
        origin="files",
        flags=tuple({flag.name: flag for flag in parts.flags}.values()),
        environment=dict(parts.environment),
        versions=dict(parts.versions),
        gaps=tuple(parts.gaps),
        notes=tuple(parts.notes),
    )
    programs = programs_of(text, parts.environment)
    home = (os.environ if environ is None else environ).get("HOME", "")
    host = this_host({"HOME": home, **parts.environment}) if installed else None
    return Launch(evidence, programs, _sources(text), host)


class NoLaunchError(UnusableInputError):
    """What was given is neither a file nor a command. The message names it."""

    help_text = (
        "Pass a launch script or a configuration that exists, or a whole command line behind "
        "`--`: miles-watchdog check -- python train.py --colocate …"
    )


def _refuse_what_is_no_launch(words: Sequence[str]) -> None:
    if not words or (len(words) > 1 and not _is_script(words[0])):
        return
    path = Path(words[0])
    if path.is_dir():
        raise NoLaunchError(f"{path}: a folder, not a launch script or a command")
    if not path.exists():
        raise NoLaunchError(f"{path}: no such file")
    if not path.is_file():
        raise NoLaunchError(f"{path}: a pipe or a device, not a regular file")


def _is_script(word: str) -> bool:
    return word.endswith((".sh", ".bash", ".slurm", ".sbatch"))


def _file_text(path: Path) -> str:
    try:
        return regular_text(path, _MAX_INPUT_BYTES)
    except OSError as error:
        raise NoLaunchError(f"{path}: {error.strerror or error}") from error


def _read_file(path: Path, parts: Parts) -> None:
    if _is_binary(path):
        raise NoLaunchError(f"{path}: is binary, not a launch script or a configuration")
    before = len(parts.flags) + len(parts.environment)
    Reader(parts, DOCUMENTS, BLOCKS).read_all(sources_of([path], parts))
    if len(parts.flags) + len(parts.environment) == before:
        try:
            launch_script.parse(_file_text(path), Context(file=str(path)), parts)
        except ValueError as error:
            raise NoLaunchError(f"{path}: no command, argument or variable in it") from error


def _is_binary(path: Path) -> bool:
    """Whether it can be neither a script nor a configuration, nor an archive that holds one."""
    try:
        with open_regular(path) as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError as error:
        raise NoLaunchError(f"{path}: {error.strerror or error}") from error
    if archive_kind(head):
        return False
    has_zero = 0 in head and encoding_of(head)[0] == "utf-8"
    return has_zero or looks_binary(head)


def _read_command(text: str, parts: Parts) -> None:
    try:
        launch_script.parse(text, Context(file="command line"), parts)
    except ValueError:
        parts.add_note("the command line has no flags")


def _read_arguments(path: Path, parts: Parts) -> None:
    try:
        json_arguments.parse(_file_text(path), Context(file=str(path)), parts)
    except (ValueError, RecursionError) as error:
        raise NoLaunchError(f"{path}: not arguments as JSON: {error}") from error


def _variables(path: Path) -> dict[str, str]:
    text = _file_text(path)
    if text.lstrip().startswith("{"):
        import json

        try:
            return variables_of(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise NoLaunchError(f"{path}: not JSON: {error}") from error
    try:
        script = read_script(text)
    except ValueError as error:
        raise NoLaunchError(f"{path}: {error}") from error
    found = {name: " ".join(values) for name, values in script.variables.items()}
    if not found and text.strip():
        raise NoLaunchError(f"{path}: no line of it is NAME=value")
    return mask_mapping(found)


def _scripts(words: Sequence[str]) -> list[Path]:
    return [Path(word) for word in words if word.endswith(".sh") and Path(word).is_file()]


def programs_of(text: str, job: Mapping[str, str]) -> tuple[Program, ...]:
    """The commands that start something, each with the variables that hold for it."""
    try:
        script = read_script(text)
    except ValueError:
        return ()
    found = []
    for command in script.commands:
        words = [word.rsplit("/", 1)[-1] if i == 0 else word for i, word in enumerate(command.argv)]
        name, _ = launch_script.program_of(words)
        if not any(word.startswith("-") or word.endswith(".py") for word in words):
            continue
        seen = Seen(0, 0, 0, words=tuple(command.argv))
        own = mask_mapping({**job, **script.exported, **command.variables})
        found.append(Program(name or words[0], is_engine_program(seen), own))
    return tuple(found)


def _sources(text: str) -> dict[str, str]:
    """The texts of the Python programs that are started, as far as they are files here."""
    try:
        script = read_script(text)
    except ValueError:
        return {}
    found: dict[str, str] = {}
    for command in script.commands:
        for word in command.argv:
            path = Path(word)
            if word.endswith(".py") and path.is_file() and len(found) < 8:
                found[word] = _file_text(path)[:_MAX_SOURCE_BYTES]
    return found
