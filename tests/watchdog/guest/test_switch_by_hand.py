"""The C timer's file and its arming, without a process that hangs."""

import os

import pytest

from watchdog.guest import dead_mans_switch, host_timer
from watchdog.guest.dead_mans_switch import DeadMansSwitch


@pytest.fixture
def armed(monkeypatch):
    """What the C timer is given: time (s) and descriptor."""
    calls = []
    monkeypatch.setattr(host_timer, "is_used", lambda: False)
    monkeypatch.setattr(
        host_timer, "arm", lambda after_s, *, repeat, file: calls.append((after_s, file))
    )
    monkeypatch.setattr(
        dead_mans_switch, "sys", type("Linux", (), {"platform": "linux", "modules": {}})
    )
    return calls


@pytest.fixture
def switch(tmp_path, armed):
    switch = DeadMansSwitch(tmp_path / "0.faulthandler")
    switch.open()
    yield switch
    switch.close()


def test_what_is_armed_while_a_fork_runs_is_armed_after_it(switch, armed):
    switch.before_fork()
    switch.arm(7.0)
    assert armed == []

    switch.after_fork()

    assert [round(after_s) for after_s, _ in armed] == [7]


def test_a_timer_that_cannot_start_raises_nothing(switch, monkeypatch):
    def no_thread(after_s, *, repeat, file):
        raise RuntimeError("unable to start watchdog thread")

    monkeypatch.setattr(host_timer, "arm", no_thread)

    switch.arm(1.0)

    assert switch._due_s is None


def test_a_huge_deadline_is_one_that_the_timer_takes(switch, monkeypatch, tmp_path):
    import faulthandler

    monkeypatch.setattr(
        host_timer,
        "arm",
        getattr(host_timer, "_original", None) or faulthandler.dump_traceback_later,
    )

    switch.arm(1e14)

    assert switch._due_s is not None
    switch.disarm()


def test_a_descriptor_that_the_host_has_taken_over_is_left_alone(switch, armed, tmp_path):
    number = switch._file.number
    os.close(number)
    theirs = os.open(tmp_path / "host.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(theirs, number)
    if theirs != number:
        os.close(theirs)

    switch.arm(1.0)
    switch.close()

    assert armed == []
    assert os.write(number, b"result") == 6
    os.close(number)


def test_the_file_never_becomes_standard_error(tmp_path, armed):
    kept = os.dup(2)
    os.close(2)
    try:
        switch = DeadMansSwitch(tmp_path / "1.faulthandler")
        switch.open()
        number = switch._file.number
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    switch.close()

    assert number > 2
