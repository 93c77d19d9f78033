import os
import subprocess
import sys

import pytest


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
