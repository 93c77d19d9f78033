"""One rank of a job without torch: it enters a weight sync and hangs in it, in a chosen way."""

import ctypes
import os
import sys
import threading

from watchdog.section import phase, weight_sync


def hold_the_gil():
    ctypes.PyDLL(None).pause()


def wait_in_barrier():
    threading.Event().wait()


def finish_when_told():
    os.read(0, 1)


def say_ready():
    os.write(1, b"ready\n")


def main(way):
    if way == "never_arrives":
        with weight_sync("warm_up"):
            pass
        say_ready()
        wait_in_barrier()
    with weight_sync():
        phase("read_weights" if way == "hold_the_gil" else "barrier:entry")
        say_ready()
        {"hold_the_gil": hold_the_gil, "finish": finish_when_told}.get(way, wait_in_barrier)()


main(sys.argv[1])
