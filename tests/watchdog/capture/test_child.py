"""A program that is asked, and does not do as it should."""

import os
import resource
import signal
import time

import pytest

from watchdog.capture import child, py_spy
from watchdog.evidence import Gap


@pytest.fixture
def program(tmp_path):
    def written(text):
        path = tmp_path / "py-spy"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return written


def is_gone(pid, within_s=20):
    """Whether a process that was killed is gone, or a zombie that nobody here can reap."""
    end_s = time.monotonic() + within_s
    while time.monotonic() < end_s:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
    return False


def test_an_answer_comes_with_status_and_both_outputs(program):
    said = child.answer([program("echo out; echo err >&2; exit 3")], 30)

    assert said == (3, "out\n", "err\n")


def test_a_flood_is_ended_before_it_fills_the_memory(program):
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    gap = py_spy.dump(os.getpid(), timeout_s=60, _program=program("yes 0123456789 & wait"))

    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    assert isinstance(gap, Gap)
    assert "more than 16 MB" in gap.why
    assert grown_kb < 200_000


def test_a_flood_of_errors_is_read_to_its_end_and_kept_in_part(program):
    said = child.answer([program("yes 0123456789 | head -c 3000000 >&2")], 60)

    assert said.status == 0
    assert 60_000 < len(said.errors) < 200_000


def test_what_a_hanging_program_started_ends_with_it(program, tmp_path):
    note = tmp_path / "pid"
    path = program(f"sleep 300 & echo $! > {note}; wait")

    with pytest.raises(TimeoutError):
        child.answer([path], 3)

    assert is_gone(int(note.read_text()))


def test_one_that_hung_is_not_asked_again_at_once(program, start, monkeypatch):
    monkeypatch.setattr(py_spy, "_hung_at_s", {})
    asked = start("print('ready', flush=True); input()")
    first = py_spy.dump(asked.pid, timeout_s=1, _program=program("sleep 300"))
    again = py_spy.dump(asked.pid, timeout_s=60, _program="/nowhere/py-spy")

    assert "did not answer in time" in first.why
    assert "not asked again" in again.why


def test_an_answer_nested_too_deep_is_no_error_of_ours(program):
    deep = program("head -c 3000000 /dev/zero | tr '\\0' '['")

    gap = py_spy.dump(os.getpid(), timeout_s=60, _program=deep)

    assert isinstance(gap, Gap)
    assert "unusable" in gap.why


def test_the_guard_ends_a_program_without_its_caller(program, tmp_path):
    note = tmp_path / "pid"
    guard = child.ended_by_itself(1)
    path = program(f"sleep 300 & echo $! > {note}; wait")

    said = child.answer([*guard, path], 60)

    assert said.status in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert is_gone(int(note.read_text()))
