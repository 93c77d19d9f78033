"""Real processes: what holds the GIL can only be seen from outside of Python."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys, threading
from watchdog.process_watch import current_watch
from watchdog.section import phase, weight_sync
if {host_arms}:
    import faulthandler
    faulthandler.dump_traceback_later(3600)

def hold_the_gil(seconds):
    ctypes.PyDLL(None).sleep(seconds)

def sleep_without_it(seconds):
    ctypes.CDLL(None).sleep(seconds)

with weight_sync():
    pass
watch = current_watch()
# Files are dealt with one after the other: what comes after the opening is done after it.
opened = threading.Event()
watch._files.submit(opened.set)
assert opened.wait(20) and watch._switch.is_open
with weight_sync():
    phase("read_weights")
    {function}(5)
path = watch._switch.path
print(path.read_text())
"""


def run(tmp_path, function, host_arms=False):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(function=function, host_arms=host_arms))
    environ = {name: text for name, text in os.environ.items() if "MILES_WATCHDOG" not in name} | {
        "MILES_WATCHDOG": "1",
        "MILES_WATCHDOG_DIR": str(tmp_path / "runs"),
        "MILES_WATCHDOG_RUN": f"switch-{os.getpid()}-{function}",
        "MILES_WATCHDOG_STALL_AFTER": "1",
        "MILES_WATCHDOG_MAX_INCIDENTS": "1",
        "RANK": "0",
    }
    result = subprocess.run(
        [sys.executable, str(program)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return result.stdout


@pytest.mark.slow
def test_a_rank_that_holds_the_gil_leaves_its_stack(tmp_path):
    output = run(tmp_path, "hold_the_gil")

    assert "in hold_the_gil" in output
    assert "in <module>" in output


@pytest.mark.slow
def test_with_the_gil_free_the_timer_does_not_fire(tmp_path):
    assert run(tmp_path, "sleep_without_it").strip() == ""


@pytest.mark.slow
def test_a_host_that_uses_the_timer_keeps_it(tmp_path):
    assert run(tmp_path, "hold_the_gil", host_arms=True).strip() == ""
