import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("rank_program.py")


class Job:
    """Ranks that hang, each in its own way; none survives the test."""

    def __init__(self, ways, folder, **settings):
        self.run = f"test-{uuid.uuid4().hex[:12]}"
        self.folder = folder
        self.incidents = folder / "runs" / self.run / "incidents"
        common = {
            # A watch inside the test process itself would make these ranks its children.
            **{name: text for name, text in os.environ.items() if "MILES_WATCHDOG" not in name},
            "MILES_WATCHDOG": "1",
            "MILES_WATCHDOG_RUN": self.run,
            "MILES_WATCHDOG_DIR": str(folder / "runs"),
            "MILES_WATCHDOG_STALL_AFTER": "3",
            "WORLD_SIZE": str(len(ways)),
            "TMPDIR": str(folder / "tmp"),
            "RAY_TOKEN": "abc-def-ghi",
            **settings,
        }
        self.environ = common
        (folder / "tmp").mkdir(exist_ok=True)
        self.ranks = [self._start(rank, way, common) for rank, way in enumerate(ways)]
        for rank in self.ranks:
            assert rank.stdout.readline() == "ready\n"

    def _start(self, rank, way, environ):
        with open(self.folder / f"stderr.{rank}", "w") as errors:
            return subprocess.Popen(
                [sys.executable, str(PROGRAM), way],
                env={**environ, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip

    def said(self, rank):
        return (self.folder / f"stderr.{rank}").read_text()

    def wait_for(self, condition, timeout_s=40):
        deadline_s = time.monotonic() + timeout_s
        while not (found := condition()):
            assert time.monotonic() < deadline_s, [self.said(r) for r in range(len(self.ranks))]
            threading.Event().wait(0.05)
        return found

    def report(self):
        return next(iter(self.incidents.glob("*/report.json")), None)

    def end(self):
        for rank in self.ranks:
            rank.kill()
            rank.communicate(timeout=20)
        shutil.rmtree(f"/dev/shm/miles-watchdog-{os.getuid()}/{self.run}", ignore_errors=True)


@pytest.fixture
def job(tmp_path):
    """Start a job of ranks: `job("wait_in_barrier", "hold_the_gil", SETTING="value")`."""
    jobs = []

    def start_job(*ways, **settings):
        jobs.append(Job(ways, tmp_path, **settings))
        return jobs[-1]

    yield start_job
    for each in jobs:
        each.end()
