"""Starts jobs of ranks that hang, without torch: it has imported all beforehand, and forks.

A line of JSON on standard input is a job: `run`, `folder`, `ways` (one a rank) and `settings`
(environment variables). The process ids of its ranks appear in `<folder>/ranks.json` once all of
them are where they hang; what they say on standard error in `<folder>/stderr`. A job ends with
its last rank, and everything ends with this process.

Every process of a job looks as if a launcher had started it: its environment can be read in
`/proc`, though it was never executed.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
import threading
import traceback
from functools import partial
from pathlib import Path

from watchdog.guest import host_timer  # noqa: F401 (what the start-up hook would have imported)

RUN_VARIABLE = "MILES_WATCHDOG_RUN"
# What a process imports at a stall, or on the way to it: here it is paid for once.
PREPARED = (
    "watchdog.section",
    "watchdog.process_watch",
    "watchdog.node.duties",
    "watchdog.node.correspondent",
    "watchdog.capture.ptrace",
    "watchdog.incident",
    "watchdog.diagnosis",
    "watchdog.rules",
    "watchdog.reports",
)
# By which signal a rank is made to lose a thread of its watchdog, or never to give back the GIL.
ENDS_THREAD = {
    "monitor": (signal.SIGUSR1, "weight-sync-watchdog"),
    "incident": (signal.SIGUSR2, "weight-sync-watchdog-incident"),
    "node": (signal.SIGRTMIN, "weight-sync-watchdog-node"),
    "files": (signal.SIGRTMIN + 1, "weight-sync-watchdog-files"),
}
HOLD_THE_GIL = signal.SIGRTMIN + 2
_PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_void_p


def main():
    for name in PREPARED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, reap)
    for line in sys.stdin:
        order = json.loads(line)
        fork_into(be_job, **order)


def reap(*_):
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def fork_into(work, *arguments, **named):
    """Do the work in a child, which runs nothing else of this process and ends with it."""
    if pid := os.fork():
        return pid
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        work(*arguments, **named)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(70)


def be_job(run, folder, ways, settings):
    """Be the launcher of one job."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(settings)
    name_in_environment(RUN_VARIABLE, run)
    name_in_environment("WORLD_SIZE", str(len(ways)))
    error = os.open(f"{folder}/stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    null = os.open(os.devnull, os.O_RDWR)
    for target, descriptor in enumerate((null, null, error)):
        os.dup2(descriptor, target)
    ready_read, ready_write = os.pipe()
    pids = [fork_into(be_rank, rank, way, ready_write) for rank, way in enumerate(ways)]
    os.close(ready_write)
    for _ in ways:
        assert os.read(ready_read, 1)
    unfinished = Path(folder, ".ranks.json")
    unfinished.write_text(json.dumps(pids))
    unfinished.rename(Path(folder, "ranks.json"))
    for pid in pids:
        os.waitpid(pid, 0)
    os._exit(0)


def name_in_environment(name, value):
    """Set a variable in the process's memory as well, where /proc shows it from.

    The value must be as long as the one that the zygote was started with.
    """
    at = libc.getenv(name.encode())
    assert len(ctypes.string_at(at)) == len(value.encode()), (name, value)
    ctypes.memmove(at, value.encode(), len(value.encode()))
    os.environ[name] = value


def be_rank(rank, way, ready):
    from watchdog.section import phase, weight_sync

    name_in_environment("RANK", str(rank))
    name_in_environment("LOCAL_RANK", str(rank))
    for number, name in ENDS_THREAD.values():
        signal.signal(number, partial(end_thread, name))
    signal.signal(HOLD_THE_GIL, hold_the_gil)
    if way == "never_arrives":
        with weight_sync("warm_up"):
            pass
        os.write(ready, b"r")
        threading.Event().wait()
    with weight_sync():
        phase("read_weights" if way == "hold_the_gil" else "barrier:entry")
        os.write(ready, b"r")
        hold_the_gil() if way == "hold_the_gil" else wait_in_barrier()


def wait_in_barrier():
    threading.Event().wait()


def hold_the_gil(*_):
    # A signal would end the call.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).pause()


def end_thread(name, *_):
    for thread in threading.enumerate():
        if thread.name == name:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )


if __name__ == "__main__":
    main()
