"""Time as a thing that tests can own."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Where the watchdog reads the time and waits."""

    def now_s(self) -> float:
        """Monotonic time (s)."""
        ...

    def wall_s(self) -> float:
        """Seconds since the Unix epoch."""
        ...

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Wait until the event is set or the time is over; returns whether it is set."""
        ...


class SystemClock:
    """The real one."""

    def now_s(self) -> float:
        """Monotonic time (s)."""
        return time.monotonic()

    def wall_s(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Wait until the event is set or the time is over; returns whether it is set."""
        return event.wait(timeout_s)
