"""Processes that do not outlive the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent ends, even by SIGKILL.

    Ends the process at once where the parent is gone already.

    Args:
        parent_pid: Who is expected to be the parent. Its *thread* that started this
            process counts: it must live as long as the parent does.

    Source:
        prctl(2), `PR_SET_PDEATHSIG`: not inherited by children, and sent when the
        creating thread ends.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)
