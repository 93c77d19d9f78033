"""A stack for the case that no Python thread can run: `faulthandler`'s C timer.

It is armed with each section, a little later than the deadline. The monitor disarms it once
the deadline has passed, so that it fires only where the monitor could not run: the GIL is held.
(With the GIL free it would read stacks that change under its hands.)

There is one such timer a process, and it is the host's: as soon as the host arms it, ours is
given up for good.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from pathlib import Path

from watchdog import host_timer

# Time that the monitor has to disarm it after the deadline (s).
MARGIN_S = 2.0


class DeadMansSwitch:
    """Arms and disarms the timer.

    Attributes:
        path: Where the stack goes; removed again if it stayed empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._is_armed = False
        self._is_closed = False

    def open(self) -> None:
        """Open the file; without it the switch stays off.

        Raises:
            OSError: It cannot be created.
        """
        if not sys.platform.startswith("linux") or "pytest_timeout" in sys.modules:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        if self._is_closed:
            return
        self._descriptor = os.open(self.path, flags, 0o644)
        # A slow disk may keep the opening thread until after the end.
        if self._is_closed:
            self.close()

    def arm(self, after_s: float) -> None:
        """Let the timer fire in `after_s`, unless the host uses it. Costs one short thread."""
        if self._descriptor >= 0 and not host_timer.is_used():
            host_timer.arm(after_s, repeat=False, file=self._descriptor)
            self._is_armed = True

    def disarm(self) -> None:
        """Stop the timer, if it is ours."""
        if self._is_armed:
            self._is_armed = False
            if not host_timer.is_used():
                faulthandler.cancel_dump_traceback_later()

    def close(self) -> None:
        """Disarm for good, and remove the file if nothing was written."""
        self._is_closed = True
        self.disarm()
        if self._descriptor >= 0:
            is_empty = os.fstat(self._descriptor).st_size == 0
            os.close(self._descriptor)
            self._descriptor = -1
            if is_empty:
                self.path.unlink(missing_ok=True)
