"""`settings`: what is set well and cannot be had on this machine is said as well."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

from watchdog.cli import group
from watchdog.run.substitute import substitute_root


def warnings(**variables: str) -> str:
    environ = {f"MILES_WATCHDOG_{name}": text for name, text in variables.items()}
    return CliRunner().invoke(group, ["settings"], env=environ).stderr


def test_a_folder_that_cannot_be_written_is_named_with_the_one_that_is_used_instead(tmp_path):
    (tmp_path / "file").write_text("")

    for folder in (tmp_path / "file" / "runs", "/proc/x"):
        told = warnings(DIR=str(folder))
        assert f"MILES_WATCHDOG_DIR={str(folder)[:80]!r} cannot be written" in told
        assert f"incidents go to {substitute_root()} instead" in told


def test_a_folder_that_does_not_exist_yet_is_no_trouble_and_is_not_made(tmp_path):
    assert warnings(DIR=str(tmp_path / "a" / "b")) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["/nope/notify --x", "no-such-program-anywhere", "'unclosed"])
def test_a_command_that_cannot_be_started_is_named(tmp_path, command):
    told = warnings(DIR=str(tmp_path), ON_STALL=command)

    assert "Warning: MILES_WATCHDOG_ON_STALL cannot be run" in told


@pytest.mark.parametrize("command", [f"{sys.executable} -V", "sh", "nobody-knows $1 | cat"])
def test_a_command_that_exists_or_that_a_shell_is_to_judge_is_let_alone(tmp_path, command):
    assert warnings(DIR=str(tmp_path), ON_STALL=command) == ""


def test_the_line_at_the_start_names_the_folder_that_incidents_go_to(tmp_path):
    program = (
        "from watchdog.process_watch import ensure_started\n"
        "import sys\n"
        "ensure_started()\n"
        "sys.stdin.read()\n"
    )
    environ = {name: text for name, text in os.environ.items() if "MILES_WATCHDOG" not in name}
    environ |= {
        "MILES_WATCHDOG": "1", "MILES_WATCHDOG_DIR": "/proc/x", "MILES_WATCHDOG_RUN": "job",
        "RANK": "0", "WORLD_SIZE": "1", "TMPDIR": str(tmp_path),
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=environ, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as rank:  # fmt: skip
        limit = threading.Timer(60.0, rank.kill)
        limit.start()
        try:
            line = next(line for line in rank.stderr if "] on; " in line)
        finally:
            rank.stdin.close()
            rank.wait()
            limit.cancel()

    folder = tmp_path / f"miles-watchdog-{os.getuid()}" / "job"
    assert f"on; without a folder, incidents go to {folder}; " in line
