"""A stack for the case that no Python thread can run: `faulthandler`'s C timer.

It is armed with each section, a little later than the deadline. The monitor disarms it once
the deadline has passed, so that it fires only where the monitor could not run: the GIL is held.
(With the GIL free it would read stacks that change under its hands.)

There is one such timer a process, and it is the host's: as soon as the host arms it, ours is
given up for good.

A process that forks would hand its child an armed timer without the thread behind it, and the
child would wait for that thread as it ends. So the timer is off while the process forks.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import threading
import time
from pathlib import Path

from watchdog.guest import host_timer
from watchdog.guest.notices import notice_once
from watchdog.guest.own_descriptor import OwnDescriptor

# Time that the monitor has to disarm it after the deadline (s).
MARGIN_S = 2.0
_LONGEST_S = threading.TIMEOUT_MAX / 2


class DeadMansSwitch:
    """Arms and disarms the timer.

    Attributes:
        path: Where the stack goes; removed again if it stayed empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: OwnDescriptor | None = None
        # When it is to fire (monotonic, s), `None` where it is not armed.
        self._due_s: float | None = None
        self._num_forks = 0
        self._is_closed = False
        # Re-entrant: a signal handler may fork in the middle of anything here.
        self._lock = threading.RLock()

    @property
    def is_open(self) -> bool:
        """Whether there is a file to write to."""
        return self._file is not None

    def open(self) -> None:
        """Open the file; without it the switch stays off.

        Raises:
            OSError: It cannot be created.
        """
        if not sys.platform.startswith("linux") or "pytest_timeout" in sys.modules:
            return
        if self._is_closed:
            return
        self._file = OwnDescriptor(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        # A slow disk may keep the opening thread until after the end.
        if self._is_closed:
            self.close()

    def arm(self, after_s: float) -> None:
        """Let the timer fire in `after_s`, unless the host uses it. Costs one short thread.

        Never raises: a section is watched without it too.
        """
        if self._file is None or host_timer.is_used():
            return
        with self._lock:
            self._due_s = time.monotonic() + min(after_s, _LONGEST_S)
            if not self._num_forks:
                self._set()

    def disarm(self) -> None:
        """Stop the timer, if it is ours."""
        with self._lock:
            if self._due_s is not None:
                self._due_s = None
                self._cancel()

    def before_fork(self) -> None:
        """Stop the timer until `after_fork`; what is armed meanwhile is armed then."""
        with self._lock:
            self._num_forks += 1
            if self._due_s is not None:
                self._cancel()

    def after_fork(self) -> None:
        """Go on in the process that forked."""
        with self._lock:
            self._num_forks = max(0, self._num_forks - 1)
            if not self._num_forks and self._due_s is not None and not host_timer.is_used():
                self._set()

    def close(self) -> None:
        """Disarm for good, and remove the file if nothing was written."""
        self._is_closed = True
        self.disarm()
        file, self._file = self._file, None
        if file is not None:
            file.close()
            with contextlib.suppress(OSError):
                if self.path.stat().st_size == 0:
                    self.path.unlink()

    def _set(self) -> None:
        number = -1 if self._file is None else self._file.number
        if number < 0 or self._due_s is None:
            self._due_s = None
            return
        # At once is too early: the timer takes no time of 0.
        after_s = max(self._due_s - time.monotonic(), 0.001)
        try:
            host_timer.arm(after_s, repeat=False, file=number)
        except Exception as error:
            self._due_s = None
            notice_once("switch", f"no stack of a rank that holds its GIL: {error!r}")

    @staticmethod
    def _cancel() -> None:
        if not host_timer.is_used():
            faulthandler.cancel_dump_traceback_later()
