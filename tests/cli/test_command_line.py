from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import watchdog.cli
from watchdog.cli import COMMANDS, group
from watchdog.cli.lazy_group import LazyGroup
from watchdog.errors import UnusableInputError
from watchdog.exit_status import FAULT


def module_of(name: str):
    return importlib.import_module(f"watchdog.cli.{name.replace('-', '_')}")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_listed_sentence_is_the_first_of_the_commands_own_help(name):
    command = module_of(name).command

    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == COMMANDS[name]


def test_every_module_with_a_command_is_in_the_table():
    folder = Path(watchdog.cli.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if "\n@click.command(" in path.read_text()}

    assert modules == {name.replace("-", "_") for name in COMMANDS}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_for_every_option(name):
    result = CliRunner().invoke(group, [name, "--help"])

    assert result.exit_code == 0
    options = [p for p in module_of(name).command.params if isinstance(p, click.Option)]
    assert all(option.help for option in options)


def test_help_lists_every_command_without_importing_what_only_reports_need():
    program = (
        "import sys; from watchdog.cli import group; group(['--help'], standalone_mode=False);"
        "print(sorted({'rich', 'jinja2', 'torch', 'cattrs', 'psutil'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    *listing, imported = done.stdout.splitlines()
    assert imported == "[]"
    assert all(any(line.split()[:1] == [name] for line in listing) for name in COMMANDS)


def failing_group(error: Exception) -> click.Group:
    tool = LazyGroup("tool", commands_help={"fail": ""}, package="none", params=[
        click.Option(["--debug"], is_flag=True)], callback=lambda debug: None)  # fmt: skip

    @click.command("fail")
    def fail() -> None:
        raise error

    tool.get_command = lambda ctx, name: fail
    return tool


def test_an_error_of_ours_ends_with_message_advice_and_its_own_status():
    error = UnusableInputError("dump.txt: no stack in it\x1b[2J")

    result = CliRunner().invoke(failing_group(error), ["fail"])

    assert result.exit_code == UnusableInputError.exit_code
    assert r"Error: dump.txt: no stack in it\x1b[2J" in result.stderr
    assert UnusableInputError.help_text in result.stderr
    assert "Traceback" not in result.output


def test_an_error_that_nobody_foresaw_is_called_a_fault_of_the_program():
    result = CliRunner().invoke(failing_group(KeyError("x")), ["fail"])

    assert result.exit_code == FAULT
    assert "KeyError" in result.stderr
    assert "--debug" in result.stderr


def test_debug_lets_the_error_through():
    result = CliRunner().invoke(failing_group(KeyError("x")), ["--debug", "fail"])

    assert isinstance(result.exception, KeyError)


def test_an_unknown_command_is_a_usage_error():
    result = CliRunner().invoke(group, ["diagnoze"])

    assert result.exit_code == 2


def test_the_version_is_the_distributions():
    from importlib.metadata import version

    assert CliRunner().invoke(group, ["--version"]).output.split()[-1] == version("miles-watchdog")


def test_a_reader_that_goes_away_causes_no_traceback():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", "from watchdog.cli import main; main()", "--help"],
        stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(write)

    assert "Traceback" not in done.stderr


def test_json_of_incidents_is_json(tmp_path):
    result = CliRunner().invoke(group, ["incidents", str(tmp_path), "--json"])

    assert json.loads(result.output) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_keeps_its_tables_line_by_line(name):
    text = CliRunner().invoke(group, [name, "--help"]).output

    assert "\\b" not in text
    if "Exit status:\n" in (module_of(name).command.help or ""):
        statuses = text[text.index("Exit status:") :].splitlines()[1:4]
        assert all(line.strip()[:1].isdigit() for line in statuses[:2])


def tool(*arguments, **more):
    program = "from watchdog.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output="stdout" not in more,
        timeout=60,
        check=False,
        **more,
    )


def test_a_full_disk_is_no_fault_of_ours(tmp_path):
    with open("/dev/full", "wb") as full:
        done = tool("rules", "--markdown", stdout=full, stderr=subprocess.PIPE)

    assert done.returncode == 2
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["rules"], ["--help"], ["check", "--help"], ["settings"]])
def test_a_reader_who_has_seen_enough_is_not_told_of_a_hazard(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = tool(*arguments, stdout=pipe, stderr=subprocess.PIPE)

    assert done.returncode == 141
    assert done.stderr == b""


def test_without_a_standard_output_the_rules_are_listed_to_nobody():
    program = 'exec "$0" -c "from watchdog.cli import main; main()" rules >&-'

    done = subprocess.run(
        ["/bin/sh", "-c", program, sys.executable],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, b"")


def test_files_of_no_known_kind_are_refused_by_name(tmp_path):
    (tmp_path / "hello.txt").write_text("hello\n")

    for path in (tmp_path / "hello.txt", Path("/bin/sh")):
        result = CliRunner().invoke(group, ["diagnose", str(path)])

        assert result.exit_code == 2
        assert "no file was recognised" in result.stderr
        assert path.name in result.stderr


def test_a_folder_that_cannot_be_written_to_is_an_unusable_argument(tmp_path):
    run = tmp_path / "run.sh"
    run.write_text("python train.py --colocate --lora-rank 8\n")

    result = CliRunner().invoke(group, ["diagnose", str(run), "--output", "/proc/nowhere"])

    assert result.exit_code == 2
    assert "/proc/nowhere" in result.stderr


def test_a_dash_is_standard_input():
    text = "#!/bin/bash\npython train.py --colocate --lora-rank 8\n"

    result = CliRunner().invoke(group, ["diagnose", "--json", "-"], input=text)

    assert "colocate" in {flag["name"] for flag in json.loads(result.stdout)["flags"]}


def test_why_no_file_was_recognised_is_said(tmp_path):
    for name, text in (("empty", ""), ("one/a", "x\n"), ("two/a", "x\n"), ("two/b", "y\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "none").mkdir()

    def told(name):
        return CliRunner().invoke(group, ["diagnose", str(tmp_path / name)]).stderr

    assert "empty (is empty)" in told("empty")
    assert "one (1 file looked at, nothing known in it)" in told("one")
    assert "two (2 files looked at, nothing known in them)" in told("two")
    assert "none (there is no file in it)" in told("none")


@pytest.mark.parametrize(("text", "why"), [("", "is empty"), ("hello\n", "1 file looked at")])
def test_of_standard_input_no_temporary_path_is_shown(text, why):
    result = CliRunner().invoke(group, ["diagnose", "-"], input=text)

    assert result.exit_code == 2
    assert f"no file was recognised in standard input ({why}" in result.stderr


def test_a_command_without_a_known_flag_is_not_called_harmless():
    said = CliRunner().invoke(group, ["check", "--no-installed", "--", "ls", "-la"])
    told = CliRunner().invoke(
        group, ["check", "--json", "--", "python", "t.py", "--colocate", "--x=1"]
    )

    assert "No flag of a training run was recognised: this says nothing on it." in said.output
    flags = json.loads(told.output)["flags"]
    assert (flags["known"], flags["unknown"]) == (["colocate"], ["x"])
