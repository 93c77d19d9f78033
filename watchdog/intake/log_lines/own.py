"""What the watchdog itself writes into the log of a run, besides its summary of a stall.

What these lines do not say: that a rank failed. One that the watchdog ended had waited, or had
been waited for; its exit status is the watchdog's.
"""

from __future__ import annotations

from watchdog.exit_status import STALLED
from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "watchdog_ending",
        "[miles-watchdog] ending ",
        rf"\[miles-watchdog\] ending (?P<ended>[\w ]{{1,40}}) with status {STALLED}\b",
    ),
    line_kind(
        "watchdog_recovered",
        "ended after all in ",
        r"\[miles-watchdog\] (?P<section>\S{1,80}) .{0,40}\bended after all in ",
    ),
)
