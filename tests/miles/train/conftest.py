import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest


class TrainingRun:
    """`python -m miles.train`, and every process that belongs to it."""

    def __init__(self, folder, flags, python_flags=()):
        self._mark = f"MILES_TEST_RUN={uuid.uuid4()}"
        self._metrics = folder / "metrics.jsonl"
        self._errors = folder / "stderr"
        self._unread = b""
        self.output = ""
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TMPDIR": str(self.scratch)}
        name, _, value = self._mark.partition("=")
        command = [sys.executable, *python_flags, "-m", "miles.train", *flags]
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*command, "--save-metrics", str(self._metrics)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment | {name: value},
            )

    @property
    def errors(self):
        return self._errors.read_text()

    def metrics(self):
        return [json.loads(line) for line in self._metrics.read_text().splitlines()]

    def wait_for_line(self, start, within_s=90.0):
        """Read output up to the line that begins so; fail if it does not come in time."""
        deadline_s = time.monotonic() + within_s
        while True:
            line = self._line(deadline_s - time.monotonic())
            assert line is not None, f"no line {start!r}; stderr: {self.errors}"
            self.output += f"{line}\n"
            if line.startswith(start):
                return line

    def finish(self, within_s=90.0):
        """Wait for the end of the launcher; its exit status."""
        output, _ = self.process.communicate(timeout=within_s)
        self.output += (self._unread + output).decode()
        return self.process.returncode

    def ranks(self):
        """The rank processes, by rank."""
        found = {}
        for each in self._members():
            if "miles.train_rank" in each.cmdline():
                found[int(each.environ()["RANK"])] = each
        return [found[rank] for rank in sorted(found)]

    def engines(self):
        return [p for p in self._members() if "miles.rollout.engine_server" in p.cmdline()]

    def wait_until_all_ended(self, within_s=30.0):
        """What is still alive after that time; the kernel needs a moment to reap."""
        _, alive = psutil.wait_procs(self._members(), timeout=within_s)
        return alive

    def kill_everything(self):
        for each in self._members():
            each.kill()
        self.process.kill()
        self.process.wait(timeout=30)
        self.process.stdout.close()

    def _line(self, within_s):
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, within_s))
            piece = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not piece:
                return None
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def _members(self):
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                environment = Path(f"/proc/{process.pid}/environ").read_bytes()
                alive = process.status() != psutil.STATUS_ZOMBIE
                if alive and self._mark.encode() in environment and process.pid != os.getpid():
                    found.append(process)
        return found


@pytest.fixture
def start_run(tmp_path):
    """Start a run; whatever is left of it at the end of the test is killed."""
    runs = []

    def start(*flags, python_flags=()):
        folder = tmp_path / str(len(runs))
        folder.mkdir()
        runs.append(TrainingRun(folder, flags, python_flags))
        return runs[-1]

    yield start
    for run in runs:
        run.kill_everything()


@pytest.fixture
def comes_to_wait_in():
    """Poll until a process's main thread waits in a kernel function, for a bounded time."""

    def waits(process, functions, within_s=60.0):
        pause = threading.Event()
        deadline_s = time.monotonic() + within_s
        where = ""
        while time.monotonic() < deadline_s and where not in functions:
            where = Path(f"/proc/{process.pid}/task/{process.pid}/wchan").read_text()
            pause.wait(0.05)
        return where

    return waits
