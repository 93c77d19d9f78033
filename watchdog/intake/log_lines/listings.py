"""Listings of files beside the logs: what lies there, and since when.

What these lines do not say: whether anybody holds the lock; many lock files stay when it is free.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "lock_file",
        "lock",
        r"^-[rwxst-]{9}\S? .{1,120}? (?P<modified>(?:[A-Z][a-z]{2} +\d{1,2}|20\d\d-\d\d-\d\d)"
        r" \d\d:\d\d(?::\d\d\S*)?)(?: [+-]\d{4})? (?P<path>\S{0,400}lock\S{0,80})$",
    ),
)
