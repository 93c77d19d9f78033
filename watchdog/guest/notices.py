"""What the watchdog says on stderr from inside a trainer, without a lock.

The training thread may be blocked while it holds the lock of a logging handler or of
`sys.stderr` (a full pipe is enough), so neither is used here.
"""

from __future__ import annotations

import os
import select
import sys

from watchdog.guest.own_descriptor import is_open

_PREFIX = "[miles-watchdog] "
# A pipe that poll() calls writable takes this many bytes without blocking (POSIX PIPE_BUF).
_MAX_BYTES = 4096
_said: set[str] = set()


def has_standard_error() -> bool:
    """Whether descriptor 2 is one: a process that began without may open any file as number 2."""
    return sys.__stderr__ is not None and is_open(2)


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
