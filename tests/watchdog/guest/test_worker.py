"""The worker's thread may be made to exit by code of the host; what it had in hand is done."""

import ctypes
import threading

import pytest

from watchdog.guest.worker import IncidentWorker

# Threads that exit are what this is about.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


def kept_until(worker, is_done, tries=2000):
    """What `keep` said, called as often as the monitor would, until it is done."""
    said = True
    while tries and not is_done.wait(0.01) and said:
        said = worker.keep()
        tries -= 1
    assert tries
    return said


def test_a_task_whose_thread_exits_begins_anew_and_the_others_follow():
    worker, done, runs = IncidentWorker(), threading.Event(), []

    def exits_once():
        runs.append("first")
        if len(runs) == 1:
            raise SystemExit

    worker.submit(exits_once)
    worker.submit(lambda: runs.append("second"))
    worker.submit(done.set)

    assert kept_until(worker, done)
    assert runs == ["first", "first", "second"]
    worker.stop(30)


def test_a_task_that_arrives_as_the_thread_exits_is_not_lost():
    worker, waits, done = IncidentWorker(), threading.Event(), threading.Event()
    worker.submit(waits.set)
    assert waits.wait(30)
    # It waits for the next task now, or is about to; what ends it strikes as that arrives.
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(worker._thread.ident), ctypes.py_object(SystemExit)
    )

    worker.submit(done.set)

    assert kept_until(worker, done)
    worker.stop(30)


def test_a_thread_that_exits_again_and_again_is_not_replaced_for_ever():
    worker, runs = IncidentWorker(), []

    def exits():
        runs.append(1)
        raise SystemExit

    worker.submit(exits)

    assert not kept_until(worker, threading.Event())
    assert len(runs) == 3
