"""What the watchdog says on stderr from inside a trainer, without a lock.

The training thread may be blocked while it holds the lock of a logging handler or of
`sys.stderr` (a full pipe is enough), so neither is used here.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys

_PREFIX = "[miles-watchdog] "
# A pipe that poll() calls writable takes this many bytes without blocking (POSIX PIPE_BUF).
_MAX_BYTES = 4096
_said: set[str] = set()


def has_standard_error() -> bool:
    """Whether descriptor 2 is one.

    A process that began without it, or that closed it, may open any file as number 2. A standard
    stream is handed on to children; what Python opens is not.
    """
    if sys.__stderr__ is None:
        return False
    try:
        return not fcntl.fcntl(2, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    except OSError:
        return False


def notice(text: str) -> None:
    """Write one message to file descriptor 2; drop it where that would block. Never raises."""
    if not has_standard_error():
        return
    try:
        lines = "".join(f"{_PREFIX}{line}\n" for line in text.splitlines())
        data = lines.encode(errors="replace")
        for start in range(0, len(data), _MAX_BYTES):
            poll = select.poll()
            poll.register(2, select.POLLOUT)
            if not poll.poll(200):  # ms
                return
            os.write(2, data[start : start + _MAX_BYTES])
    except (OSError, ValueError):
        return


def notice_once(key: str, text: str) -> None:
    """Say it the first time that this key comes up in this process. Never raises."""
    if key not in _said:
        _said.add(key)
        notice(text)
