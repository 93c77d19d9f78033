"""A sentinel's speakers are part of what may die in the middle of an incident."""

import os
import signal
import time

import pytest

from watchdog.sentinel import endings
from watchdog.sentinel.speakers import Speakers

PLACE = (1, 1)


@pytest.fixture
def speakers():
    started = []

    def start_one(script):
        found = Speakers(["/bin/sh", "-c", script])
        found.start("box", place=PLACE)
        started.append(found)
        return found, next(iter(found._places))

    yield start_one
    for each in started:
        for pid in each._places:
            endings.kill(pid)
            os.waitpid(pid, 0)


def looked_until_over(speakers, now_s=0.0):
    deadline_s = time.monotonic() + 30
    while not (failed := speakers.look(now_s)) and speakers:
        assert time.monotonic() < deadline_s
        os.sched_yield()
    return failed


def test_one_that_has_spoken_is_not_replaced(speakers):
    found, _ = speakers("exit 0")

    assert looked_until_over(found) == set()
    assert not found


@pytest.mark.parametrize("script", ["kill -KILL $$", "exit 1"])
def test_one_that_died_of_something_is_replaced(speakers, script):
    found, _ = speakers(script)

    assert looked_until_over(found) == {PLACE}
    assert not found


def test_one_that_somebody_stopped_is_ended_and_replaced(speakers):
    found, pid = speakers("read forever < /dev/zero")
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED)

    assert found.look(100.0) == set()
    assert found.look(114.0) == set()
    assert found
    assert looked_until_over(found, 116.0) == {PLACE}


def test_one_that_always_fails_is_not_started_for_ever(speakers):
    found, _ = speakers("exit 1")
    for _ in range(3):
        assert looked_until_over(found) == {PLACE}
        found.start("box", place=PLACE)

    assert looked_until_over(found) == set()
