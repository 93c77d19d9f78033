"""Runs a program of tests/hangs without the watchdog, and looks at it with the real command."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

HANGS = Path(__file__).parents[2] / "hangs"
sys.path.insert(0, str(HANGS))

from _forking import room  # noqa: E402 - its folder had to be named first
from _harness import Program  # noqa: E402

ATTACH_WITHIN_S = 120.0


@contextlib.contextmanager
def unwatched(script: Path, folder: Path) -> Iterator[Program]:
    """The program, once all its ranks are about to hang; nothing of it is left afterwards."""
    folder.mkdir()
    environ = {name: v for name, v in os.environ.items() if "MILES_WATCHDOG" not in name}
    log = folder / "log.txt"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, str(script), "--folder", str(folder)],
            env={**environ, "PYTHONPATH": str(HANGS), **room()},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip
    program = Program(process, folder, folder / "no-watchdog", log)
    try:
        program.wait_until_ready()
        yield program
    finally:
        from _harness import _end

        _end(program)


@pytest.fixture
def attach():
    """Run `miles-watchdog attach`: exit status, standard output, standard error, seconds."""

    def run(*arguments: object, prefix: tuple[str, ...] = ()):
        began_s = time.monotonic()
        done = subprocess.run(
            [*prefix, sys.executable, "-c", "from watchdog.cli import main; main()", "attach",
             *map(str, arguments)],
            capture_output=True, text=True, timeout=ATTACH_WITHIN_S, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr, time.monotonic() - began_s

    return run


def start_ticks(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def tracer(pid: int) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("TracerPid"))


def report_of(output: str) -> dict:
    return json.loads(output)
