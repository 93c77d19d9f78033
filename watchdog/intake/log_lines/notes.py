"""What people write beside the files: how long it has been like this, files that are in the way.

What these lines do not say: whether it is the wait that the other files show.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

_STILL = (
    r"(?:hang\w*|hung|stuck|stall\w*|nothing|no (?:progress|output|answer)|like this|silent|stands?"
    r"|frozen|freez\w*|froze|blocked)"
)

LINES = (
    line_kind(
        "told_wait",
        ("since ", " for "),
        rf"(?i)(?<!got )\b{_STILL}\b.{{0,40}}?\b(?:since|for)(?: about| over| more than|:)? ~?"
        r"(?P<amount>\d{1,6}(?:\.\d+)?) ?(?P<unit>s|sec\w*|min\w*|h|hours?|hrs?|d|days?)\b",
    ),
    line_kind(
        "lock_file",
        "lock",
        r"^-[rwxst-]{9}\S? .{1,120}? (?P<modified>(?:[A-Z][a-z]{2} +\d{1,2}|20\d\d-\d\d-\d\d)"
        r" \d\d:\d\d(?::\d\d\S*)?)(?: [+-]\d{4})? (?P<path>\S{0,400}lock\S{0,80})$",
    ),
)
