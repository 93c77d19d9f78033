"""What sets the watchdog's own threads apart from the job's: their name, and no signals."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from watchdog.guest import half_done_imports

NAME = "weight-sync-wd"
"""What the kernel calls each of them (`comm`, at most 15 characters)."""

# What a thread brings upon itself; blocked, it would end the process without a word of its own.
_OF_ITS_OWN_DOING = {
    signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS,
}  # fmt: skip


def mark_this_thread() -> None:
    """Give the calling thread that name, and leave all signals to the host's threads.

    What it reads and writes is not the job's doing; and a host that blocks a signal in all its
    threads, to take it by `sigwait`, must not find it delivered to one that it knows nothing of.
    """
    half_done_imports.is_own_thread()
    with contextlib.suppress(OSError, ValueError):
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _OF_ITS_OWN_DOING)
    with contextlib.suppress(OSError), open(_comm(), "w") as file:
        file.write(NAME)


@contextlib.contextmanager
def signals_of_main_thread() -> Iterator[None]:
    """Block what the main thread blocks, for a program started meanwhile: it inherits that.

    Nothing is delivered here meanwhile that the main thread would not take as well.
    """
    before = signal.pthread_sigmask(signal.SIG_SETMASK, _blocked_in_main_thread())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _blocked_in_main_thread() -> set[int]:
    mask = 0
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/status") as file:
        for line in file:
            if line.startswith("SigBlk:"):
                mask = int(line.split()[1], 16)
    return {number for number in signal.valid_signals() if mask >> number - 1 & 1}


def _comm() -> str:
    return f"/proc/self/task/{threading.get_native_id()}/comm"
