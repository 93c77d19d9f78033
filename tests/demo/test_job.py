"""Nothing of a demo's job remains, whatever its processes do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from watchdog.demo.job import TOKEN, Job

# As torchrun does: the worker is in a session of its own, out of reach of a group's signal.
DETACHED_WORKER = """
import signal, subprocess, sys
worker = subprocess.Popen([sys.executable, "-uc",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); signal.pause()"],
    start_new_session=True)
signal.pause()
"""
STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready")
signal.pause()
"""
ORPHAN = """
import subprocess, sys
subprocess.Popen([sys.executable, "-uc", "import signal; print('ready'); signal.pause()"],
    start_new_session=True)
"""


def first_line(job) -> str:
    lines = job.lines(time.monotonic() + 60)
    return next(line for line in lines if line is not None)


@pytest.mark.parametrize("program", [DETACHED_WORKER, STUBBORN, ORPHAN])
def test_no_process_outlives_the_job(started, program):
    job = started(program)
    assert first_line(job) == "ready"
    pids = job.pids()
    assert pids

    job.end()

    assert job.pids() == []
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def test_ending_twice_is_harmless(started):
    job = started("print('ready')")
    list(job.lines(time.monotonic() + 60))

    job.end()
    job.end()

    assert job.exit_status == 0


def test_the_lines_end_with_the_job(started):
    job = started("print('a'); print('b'); raise SystemExit(3)")

    lines = [line for line in job.lines(time.monotonic() + 60) if line is not None]

    assert lines == ["a", "b"]
    assert job.exit_status == 3


def test_silence_is_told(started):
    job = started("import signal; signal.pause()")

    assert next(job.lines(time.monotonic() + 60, pause_s=0.01)) is None


def test_the_lines_stop_at_the_deadline(started):
    job = started("import signal; signal.pause()")

    assert list(job.lines(time.monotonic())) == []


def test_bytes_that_are_no_text_do_not_end_the_reading(started):
    job = started("import os; os.write(1, b'\\xff\\n'); os.write(1, b'after\\n')")

    assert [line for line in job.lines(time.monotonic() + 60) if line] == ["\ufffd", "after"]


def test_a_signal_reaches_the_one_process_that_is_meant(started):
    job = started("import signal; print('ready'); signal.pause()")
    assert first_line(job) == "ready"

    assert job.signal(0, "no such words", {}) is None
    assert job.signal(0, "signal.pause", {"NO_SUCH_VARIABLE": "1"}) is None
    pid = job.signal(9, "signal.pause", {})

    assert pid is not None
    assert list(job.lines(time.monotonic() + 60)) == []
    assert job.exit_status == -9


def test_ctrl_c_while_the_job_starts_leaves_no_process(monkeypatch):
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    jobs: list[Job] = []
    pids = Job.pids
    monkeypatch.setattr("threading.Thread.start", interrupted)
    monkeypatch.setattr(Job, "pids", lambda job: jobs.append(job) or pids(job))

    with pytest.raises(KeyboardInterrupt):
        Job([sys.executable, "-c", STUBBORN], dict(os.environ))

    assert pids(jobs[-1]) == []


def test_an_interrupt_between_fork_and_exec_leaves_no_process(monkeypatch):
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *arguments, env, **options):
            del env[TOKEN]  # what a child that has not yet called exec shows of its environment
            super().__init__(*arguments, env=env, **options)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)

    with pytest.raises(KeyboardInterrupt):
        Job([sys.executable, "-uc", "import signal; signal.pause()"], os.environ)

    assert not psutil.pid_exists(started[0])
