"""The statuses that a process ends with on the watchdog's behalf."""

from __future__ import annotations

STALLED = 86
"""A rank that `MILES_WATCHDOG_ABORT_AFTER` ended. Outside of what Python (1, 2, 120), shells
(126 to 128 and signals above) and sysexits.h (64 to 78) use, so that a launcher's log shows at
once whose it is."""
