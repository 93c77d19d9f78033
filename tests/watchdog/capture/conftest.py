import threading
import time
from pathlib import Path

import pytest

WAITING = """
import os, threading
def wait_for_a_line():
    os.read(0, 1)
def idle():
    threading.Event().wait()
threading.Thread(target=idle, name="loader", daemon=True).start()
print("ready", flush=True)
wait_for_a_line()
"""

HOLDS_THE_GIL = """
import ctypes
def hold():
    ctypes.PyDLL(None).pause()
print("ready", flush=True)
hold()
"""


def asleep(process):
    """The process once its main thread sleeps: it said `ready` just before."""
    deadline_s = time.monotonic() + 20
    looks = 0
    while looks < 3:
        assert time.monotonic() < deadline_s
        state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        looks = looks + 1 if state == "S" else 0
        threading.Event().wait(0.02)
    return process


@pytest.fixture
def waiting(start):
    """A process with two threads whose main thread reads its input."""
    return asleep(start(WAITING))


@pytest.fixture
def gil_holder(start):
    """A process whose main thread sleeps in C and keeps the GIL."""
    return asleep(start(HOLDS_THE_GIL))
