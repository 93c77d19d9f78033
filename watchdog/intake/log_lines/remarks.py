"""What people write beside the files: since when it hangs, when they looked.

What these lines do not say: why. A person who calls something hung may look at something slow;
only the time is believed, and only where the line does not say that it went on.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

_STANDING = (
    r"\b(?:hang(?:s|ing)?|hung|stuck|froze|frozen|nothing|no progress|blocked|stands? still"
    r"|does not move|like this|silent|quiet)\b"
)
_AMOUNT = r"(?P<amount>\d{1,4}(?:\.\d)?|half an|an|one|two|three|several)"
_UNIT = r"(?P<unit>s|sec|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?)\b"
_SAME = r"\b(?:same|identical|unchanged|no change|no difference)\b"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?"
_NOT_OVER = (
    r"(?i)^(?!.*\b(?:went on|goes on|continued|recovered|each time|every time|watchdog|timeout)\b)"
    r".*?"
)

LINES = (
    line_kind(
        "remark_duration",
        (" for ", " since ", " after "),
        rf"{_NOT_OVER}{_STANDING}[^.\n]{{0,60}}?\b(?:for|since|after)"
        rf" (?:about |over |more than |the last |at least |~ ?)?{_AMOUNT} ?{_UNIT}",
    ),
    line_kind(
        "remark_duration",
        "like this",
        rf"{_NOT_OVER}{_AMOUNT} ?{_UNIT}[^.\n]{{0,20}} like this",
    ),
    line_kind(
        "remark_duration",
        (" later", " after"),
        rf"{_NOT_OVER}{_SAME}[^.\n]{{0,20}}?{_AMOUNT} ?{_UNIT} (?:later|after)",
    ),
    line_kind(
        "remark_duration",
        " later",
        rf"{_NOT_OVER}{_AMOUNT} ?{_UNIT} later\b[^.\n]{{0,40}}?{_SAME}",
    ),
    line_kind(
        "remark_duration",
        ("same", "identical", "unchanged"),
        rf"{_NOT_OVER}(?P<begin>{_CLOCK})[ ,]+(?:and |to |until )?(?P<end>{_CLOCK})"
        rf"\W{{1,3}}{_SAME}",
    ),
    line_kind(
        "remark_duration",
        " since ",
        rf"{_NOT_OVER}{_STANDING}[^.\n]{{0,40}}? since (?:about )?(?P<begin>{_CLOCK})",
    ),
    line_kind(
        "gpu_spinning",
        "100",
        r"\b100 ?%[^\n]{0,30}?\b(?P<power_w>\d{2,4})(?:-\d{2,4})? ?W\b"
        r"[^\n]{0,10}\bof (?P<limit_w>\d{2,4})",
    ),
    line_kind(
        "observed_at",
        ("dump", "Dump", "spy", "copied", "taken", "now", "Now", "looked", "up to"),
        r"(?i)\b(?:dump(?:s|ed)?|py-?spy|copied|taken|now|looked|up to)\b[^\n\d]{0,25}"
        rf"(?P<at>(?:20\d\d-\d\d-\d\d )?{_CLOCK})(?![\d:])",
    ),
)
"""Only lines without a time of their own: what carries one is a log, not a remark."""
