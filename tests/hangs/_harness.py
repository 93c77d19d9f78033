"""Runs a program that hangs under the watchdog, and waits for what comes of it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from _forking import room

T = TypeVar("T")

_HERE = Path(__file__).parent
# Eight ranks import torch one after the other on a busy machine.
READY_WITHIN_S = 180.0
REPORT_WITHIN_S = 90.0
END_WITHIN_S = 60.0


class TooLateError(AssertionError):
    """What was waited for did not come in time."""


def wait_for(what: str, look: Callable[[], T | None], within_s: float) -> T:
    """Look again and again until there is something, no longer than so many seconds."""
    deadline_s = time.monotonic() + within_s
    while time.monotonic() < deadline_s:
        found = look()
        if found is not None:
            return found
        time.sleep(0.05)
    raise TooLateError(f"{what}: not within {within_s:g} s")


@dataclass(frozen=True)
class Program:
    """One program that runs.

    Attributes:
        process: Its launcher.
        folder: Scratch folder of the job.
        watchdog_dir: Its `MILES_WATCHDOG_DIR`.
        log: Standard error of all its processes.
    """

    process: subprocess.Popen[bytes]
    folder: Path
    watchdog_dir: Path
    log: Path

    @property
    def run(self) -> str:
        """Name of the run, unlike any other's."""
        return self.folder.name

    def pids(self) -> dict[str, int]:
        """Process ids by key, of what the launcher started."""
        return dict(json.loads((self.folder / "job.json").read_text()))

    def wait_until_ready(self) -> None:
        """Wait for the word that all ranks are about to hang."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], READY_WITHIN_S)
        if not readable or self.process.stdout.readline() != b"ready\n":
            raise TooLateError(f"not ready:\n{self.log.read_text()[-3000:]}")

    def release(self) -> None:
        """Let go of the hang."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"release\n")
        self.process.stdin.flush()

    def reports(self) -> list[Path]:
        """All report.json so far; more than one folder where nodes do not share one."""
        return sorted(self.watchdog_dir.glob("**/incidents/*/report.json"))

    def report(self, node: int | None = None) -> dict[str, Any]:
        """Wait for the (first) report and read it."""

        def look() -> Path | None:
            part = "" if node is None else f"node-{node}"
            return next((path for path in self.reports() if part in str(path)), None)

        try:
            path = wait_for("report.json", look, REPORT_WITHIN_S)
        except TooLateError as error:
            raise TooLateError(f"{error}\n{self.log.read_text()[-3000:]}") from None
        return dict(json.loads(path.read_text()))

    def left_behind(self) -> list[str]:
        """Command lines of processes of this job that still run."""
        mark = f"MILES_WATCHDOG_RUN={self.run}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    words = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append(f"{path.name}: {words.decode(errors='replace')}")
        return found


@contextlib.contextmanager
def running(
    name: str, tmp_path: Path, *, healthy: bool = False, **settings: object
) -> Iterator[Program]:
    """Run a program; when the block ends, so has every process of it, or the test fails.

    Args:
        name: Name of the program, without suffix.
        tmp_path: Folder of the test.
        healthy: Whether to run the twin.
        settings: `STALL_AFTER=3` for `MILES_WATCHDOG_STALL_AFTER=3`.
    """
    # The name of the folder names the run, which must be unlike any other.
    folder = tmp_path / f"{name.replace('_', '-')}-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    watchdog_dir = tmp_path / "watchdog"
    environment = {
        **{name: value for name, value in os.environ.items() if "MILES_WATCHDOG" not in name},
        "OMP_NUM_THREADS": "1",
        "MILES_WATCHDOG": "1",
        "MILES_WATCHDOG_DIR": str(watchdog_dir),
        **{f"MILES_WATCHDOG_{name}": str(value) for name, value in settings.items()},
        **room(),
    }
    command = [sys.executable, str(_HERE / f"{name}.py"), "--folder", str(folder)]
    log = folder / "log.txt"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [*command, *(["--healthy"] if healthy else [])],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    program = Program(process, folder, watchdog_dir, log)
    try:
        yield program
    finally:
        _end(program)


def _end(program: Program) -> None:
    process = program.process
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_WITHIN_S)
    wait_for("end of all processes", lambda: True if not program.left_behind() else None, 30)
