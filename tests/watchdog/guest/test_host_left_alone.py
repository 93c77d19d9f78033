"""What a host does with its own processes and files, with the watch running in it."""

import os
import subprocess
import sys

import pytest

DUTIES = """
import contextlib, os, sys, threading, time
from pathlib import Path
from watchdog.blackbox.writing import BlackBox
from watchdog.node.duties import NodeDuties, sentinel_pid
from watchdog.node.post import Post
from watchdog.process_identity import process_identity
from watchdog.settings import Settings

local, run_folder = map(Path, sys.argv[1:])
local.mkdir()
run_folder.mkdir()
box = local / "0.blackbox"
BlackBox.create(box, process_identity({}, rank=0).as_json())
duties = NodeDuties(Post(Settings.from_environ({}), lambda: None, box, run_folder))
theirs = os.open("/etc/hostname", os.O_RDONLY)
os.set_inheritable(theirs, True)
duties._keep_sentinel()
try:
    os.waitpid(-1, 0)
    children = "some"
except ChildProcessError:
    children = "none"
limit_s = time.monotonic() + 30
while (pid := sentinel_pid(local)) is None and time.monotonic() < limit_s:
    threading.Event().wait(0.01)
files = {}
try:
    for name in os.listdir(f"/proc/{pid}/fd"):
        # It looks around itself: what it opens for a moment is gone again.
        with contextlib.suppress(FileNotFoundError):
            files[name] = os.readlink(f"/proc/{pid}/fd/{name}")
finally:
    os.kill(pid, 9)
print(children, "/etc/hostname" in files.values(), {"0", "1", "2"} <= set(files))
"""

LAST_SYNC = """
import atexit, os
def last():
    from watchdog.process_watch import current_watch
    from watchdog.section import weight_sync
    with weight_sync("last"):
        print("last", current_watch())
atexit.register(last)
from watchdog.process_watch import ensure_started
print("first", ensure_started() is not None)
"""


CLOSES_ALL = """
import os, sys, threading
from watchdog.process_watch import current_watch, ensure_started
files = []
class Late:
    def __del__(self):
        for file in files:
            os.write(file, b"result")
        os.write(1, b"written")
keep = Late()
ensure_started()
is_idle = threading.Event()
current_watch()._files.submit(is_idle.set)
assert is_idle.wait(30) and current_watch()._switch.is_open
os.closerange(3, 256)
files += [os.open(f"{sys.argv[1]}/{n}", os.O_WRONLY | os.O_CREAT) for n in range(40)]
import builtins
builtins.keep, builtins.files = keep, files
"""


def environ(tmp_path):
    kept = {name: text for name, text in os.environ.items() if "MILES_WATCHDOG" not in name}
    return kept | {
        "MILES_WATCHDOG": "1",
        "MILES_WATCHDOG_DIR": str(tmp_path / "runs"),
        "MILES_WATCHDOG_RUN": f"alone-{os.getpid()}",
        "RANK": "0",
    }


def run_watched(program, tmp_path):
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environ(tmp_path), capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("error", ["2>&2", "2>&-"])
def test_the_sentinel_is_no_child_holds_no_file_of_the_host_and_needs_no_standard_error(
    tmp_path, error
):
    ran = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" "$2" "$3" {error}', sys.executable, DUTIES,
         str(tmp_path / "local"), str(tmp_path / "run")],
        env=environ(tmp_path) | {"MILES_WATCHDOG": "0"}, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip

    assert ran.stdout.split() == ["none", "False", "True"], ran.stderr


def test_a_sync_after_the_end_of_the_watch_starts_no_other(tmp_path):
    ran = run_watched(LAST_SYNC, tmp_path)

    assert ran.stdout.split() == ["first", "True", "last", "None"], ran.stderr


def test_nothing_is_said_into_a_file_that_the_host_opened_after_it_closed_standard_error(tmp_path):
    program = (
        "import os, sys\n"
        "from watchdog.guest.notices import notice\n"
        "os.close(2)\n"
        "number = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "notice('on')\n"
        "print(number)"
    )
    path = tmp_path / "host.txt"

    ran = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60
    )

    assert ran.stdout == "2\n"
    assert path.read_text() == ""


def test_a_watch_that_cannot_start_leaves_no_thread(tmp_path):
    program = (
        "import threading\n"
        "from watchdog import process_watch\n"
        "from watchdog.timing.monitor import Monitor\n"
        "def no_thread(self): raise RuntimeError('no thread')\n"
        "Monitor.start = no_thread\n"
        "print(process_watch.ensure_started())\n"
        "print([thread.name for thread in threading.enumerate()])"
    )

    ran = run_watched(program, tmp_path)

    assert ran.stdout.splitlines() == ["None", "['MainThread']"], ran.stderr
    assert "training goes on without" in ran.stderr


def test_a_mark_in_a_destructor_at_the_very_end_is_not_complained_of(tmp_path):
    program = (
        "from watchdog.section import phase, weight_sync\n"
        "class Late:\n"
        "    def __del__(self):\n"
        "        with weight_sync('late'): phase('late')\n"
        "import builtins\n"
        "builtins.late = Late()\n"
        "with weight_sync(): pass"
    )

    ran = run_watched(program, tmp_path)

    assert (ran.returncode, "a mark failed" in ran.stderr) == (0, False), ran.stderr


def test_nothing_is_said_into_a_file_that_took_the_place_of_standard_error(tmp_path):
    program = (
        "import os, sys\n"
        "number = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\n"
        "from watchdog.guest.notices import notice\n"
        "notice('on')\n"
        "print(number)"
    )
    path = tmp_path / "host.txt"
    ran = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" "$2" 2>&-', sys.executable, program, str(path)],
        stdout=subprocess.PIPE, text=True, timeout=60, env=environ(tmp_path) | {"RANK": ""},
    )  # fmt: skip

    assert ran.stdout == "2\n"
    assert path.read_bytes() == b""


def test_a_host_that_closed_all_descriptors_keeps_those_that_it_opened_since(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", CLOSES_ALL, str(tmp_path)],
        # No rank: a thread that happens to read a file meanwhile would close a number of theirs.
        env=environ(tmp_path) | {"RANK": ""}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert ran.stdout == "written", ran.stderr
