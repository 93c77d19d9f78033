"""A host that forks: its child must run and end as if there were no watch."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, threading
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
        {in_child}
        sys.exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), switch._due_s is not None)
print(switch._due_s)
"""


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
    environ = {name: text for name, text in os.environ.items() if "MILES_WATCHDOG" not in name}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(in_child=in_child)],
        env=environ
        | {
            "MILES_WATCHDOG": "1",
            "MILES_WATCHDOG_DIR": str(tmp_path / "runs"),
            "MILES_WATCHDOG_RUN": f"forks-{os.getpid()}",
            "RANK": "0",
        },
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert ran.stdout.splitlines() == ["5 True", "None"], ran.stderr
