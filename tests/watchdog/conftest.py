import os
import subprocess
import sys

import pytest

from watchdog.process_identity import ProcessIdentity


class ManualClock:
    """Time that only the test moves."""

    def __init__(self):
        self.time_s = 1000.0

    def now_s(self):
        return self.time_s

    def wall_s(self):
        return self.time_s

    def wait(self, event, timeout_s):
        return event.wait(timeout_s)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def identity():
    return ProcessIdentity(
        rank=0,
        world_size=2,
        local_rank=0,
        host="node-1",
        pid=1,
        role="trainer",
        framework="",
        started_at_s=0.0,
        pid_started_ticks=1,
    )


@pytest.fixture
def start():
    """Start `python -c code`, wait for its first line, and end it after the test."""
    started = []

    def start_program(code, *arguments, env=None):
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start_program
    for process in started:
        process.kill()
        process.communicate(timeout=20)
