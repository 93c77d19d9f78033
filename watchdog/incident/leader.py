"""Which of the ranks that noticed the stall writes the report: one, and always one.

A file lock, so that the kernel gives it free when its holder dies. A holder that is alive and
does not get on (stopped, or its GIL taken away in the middle) keeps the lock; after a while
without a sign of life the others leave it that lock and contend for the next.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

from watchdog.guest.own_descriptor import OwnDescriptor

STALE_AFTER_S = 15.0


class Leadership:
    """The right to write the report of one incident, from the side of one process."""

    def __init__(self, folder: Path, *, stale_after_s: float = STALE_AFTER_S) -> None:
        self._folder = folder
        self._stale_after_s = stale_after_s
        self._generation = 1
        self._lock: OwnDescriptor | None = None

    def take(self) -> bool:
        """Try once to become the leader; does not wait.

        Raises:
            OSError: No lock file can be made here.
        """
        if self._lock is not None and self._lock.number >= 0:
            return True
        path = self._folder / f"leader-{self._generation}.lock"
        lock = OwnDescriptor(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            silent_s = time.time() - os.fstat(lock.number).st_mtime
            lock.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                # A file system without locks: everybody leads; files are replaced in one step.
                return True
            if silent_s > self._stale_after_s:
                self._generation += 1
                return self.take()
            return False
        self._lock = lock
        self.sign_of_life()
        return True

    def sign_of_life(self) -> None:
        """Tell the others that the leader gets on."""
        if self._lock is not None and (number := self._lock.number) >= 0:
            os.utime(number)

    def give_up(self) -> None:
        """Let somebody else lead."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
