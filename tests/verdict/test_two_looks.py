"""What two looks at a process say: it moves, it polls, or it stands still."""

from __future__ import annotations

import pytest

from watchdog.evidence import (
    ActivitySample,
    Frame,
    Process,
    StackSample,
    ThreadActivity,
    ThreadStack,
)
from watchdog.situation.movement import movement
from watchdog.waits import wait_of

PID = 7
POLL = ("wait_for_version", "run")
ASK = ("_read_status", "begin", "getresponse", "request", *POLL)
SLEEP = ("clock_nanosleep", *POLL)


def frame(function):
    file = "http/client.py" if function in ("_read_status", "begin", "getresponse") else "job.py"
    return Frame(function, file, 1, native=function.startswith(("clock", "sock_")))


def process(*looks, wchan="", cpu_s=(1.0, 1.0), others=(), owns_gil=None, state="S"):
    """One that was seen in these stacks, a second apart."""
    stacks, activity = [], []
    for at_s, (functions, cpu) in enumerate(zip(looks, cpu_s, strict=True)):
        main = ThreadStack("MainThread", tuple(map(frame, functions)), PID, owns_gil=owns_gil)
        stacks.append(StackSample((main, *others), "py-spy", float(at_s)))
        thread = ThreadActivity(PID, "python", state, wchan, cpu)
        activity.append(ActivitySample(float(at_s), cpu, threads=(thread,)))
    return Process(
        "rank 0", "trainer", rank=0, pid=PID, status="running", stacks=tuple(stacks),
        activity=tuple(activity),
    )  # fmt: skip


def moves(one):
    return movement(one, wait_of(one).kind).moving


@pytest.mark.parametrize("looks", [(ASK, SLEEP), (SLEEP, ASK)])
def test_asking_and_sleeping_by_turns_is_polling(looks):
    assert moves(process(*looks)) is False


def test_a_sleep_that_only_the_kernel_shows_is_a_sleep():
    assert moves(process(POLL, ASK, wchan="hrtimer_nanosleep")) is False


def test_computing_and_asking_by_turns_is_movement():
    assert moves(process(("pack", "run"), ("_read_status", "post", "run"))) is True


def test_asking_for_one_thing_and_then_for_another_is_movement():
    assert moves(process((*ASK[:4], "pause", "run"), (*ASK[:4], "update", "run"))) is True


def test_a_thread_that_runs_while_it_waits_for_a_socket_sends():
    looks = (("send_weights", "run"),) * 2

    assert moves(process(*looks, wchan="sock_alloc_send_pskb", cpu_s=(1.0, 1.0001))) is True


def test_a_thread_that_does_not_run_while_it_waits_for_a_socket_stands_still():
    looks = (("send_weights", "run"),) * 2

    assert moves(process(*looks, wchan="sock_alloc_send_pskb")) is False


def test_the_only_thread_may_keep_the_gil_while_it_computes():
    one = process(*(("load_weights",),) * 2, cpu_s=(1.0, 1.9), owns_gil=True)

    assert not wait_of(one).holds_gil
    assert moves(one) is True


def test_one_that_gets_little_of_a_busy_machine_computes_too():
    one = process(*(("load_weights",),) * 2, cpu_s=(1.0, 1.05), owns_gil=True, state="R")

    assert not wait_of(one).holds_gil
    assert moves(one) is True


def test_a_thread_that_keeps_the_gil_from_others_is_told():
    other = ThreadStack("watchdog", (Frame("wait", "threading.py", 1),), 8)

    one = process(*(("load_weights",),) * 2, cpu_s=(1.0, 1.9), others=(other,), owns_gil=True)

    assert wait_of(one).holds_gil


def test_the_only_thread_that_keeps_the_gil_and_does_not_run_is_told():
    assert wait_of(process(*(("load_weights",),) * 2, owns_gil=True)).holds_gil
