"""A host that forks: its child must run and end as if there were no watch."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading
from watchdog.process_watch import current_watch
from watchdog.section import weight_sync
import faulthandler

with weight_sync():
    pass
switch = current_watch()._switch
# Files are dealt with one after the other: what comes after the opening is done after it.
opened = threading.Event()
current_watch()._files.submit(opened.set)
assert opened.wait(20) and switch.is_open
with weight_sync():
    assert switch._due_s is not None
    child = os.fork()
    if not child:
        signal.alarm(30)  # it does not outlive a test that fails
        {in_child}
        sys.exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), switch._due_s is not None)
print(switch._due_s)
"""


# Whose import takes as long as the process that began it wants.
SLOW_MODULE = """
import builtins, os
if os.getpid() == builtins.importer:
    builtins.began.set()
    builtins.go.wait(20)
whole = True
"""

FORKS_DURING_IMPORT = """
import builtins, importlib, os, signal, sys, threading
from watchdog.process_watch import current_watch
from watchdog.section import weight_sync

builtins.importer, builtins.began, builtins.go = os.getpid(), threading.Event(), threading.Event()
with weight_sync():
    current_watch()._files.submit(lambda: importlib.import_module("slow_module"))
    assert builtins.began.wait(20)
    child = os.fork()
    if not child:
        signal.alarm(30)  # it does not outlive a test that fails
        import slow_module
        os._exit(5 if slow_module.whole else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    builtins.go.set()
"""


def watched(tmp_path):
    environ = {name: text for name, text in os.environ.items() if "MILES_WATCHDOG" not in name}
    return environ | {
        "MILES_WATCHDOG": "1",
        "MILES_WATCHDOG_DIR": str(tmp_path / "runs"),
        "MILES_WATCHDOG_RUN": f"forks-{os.getpid()}",
        "RANK": "0",
    }


def test_a_child_can_import_what_a_thread_of_the_watchdog_was_importing(tmp_path):
    (tmp_path / "slow_module.py").write_text(SLOW_MODULE)

    ran = subprocess.run(
        [sys.executable, "-c", FORKS_DURING_IMPORT],
        env=watched(tmp_path) | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert ran.stdout == "5\n", ran.stderr


@pytest.mark.parametrize(
    "in_child",
    [
        "pass",
        "faulthandler.cancel_dump_traceback_later()",
        "weight_sync('in_child')(lambda: None)()",
        "current_watch()",
    ],
)
def test_a_child_forked_within_a_section_ends(tmp_path, in_child):
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(in_child=in_child)],
        env=watched(tmp_path), capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert ran.stdout.splitlines() == ["5 True", "None"], ran.stderr
