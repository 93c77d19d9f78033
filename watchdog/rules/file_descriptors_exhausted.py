"""A rank ran out of file descriptors, and its peers report a broken connection.

What hangs
    The peers, in a gloo collective that resets.

How it shows
    `Too many open files` on one rank before the others' `Connection reset by peer`; the number of
    open files near the limit.

What to do
    Close what is opened per sync (event loops, sockets); raise `ulimit -n` to gain time.

Not to be confused with
    A peer that was killed.

Source
    https://github.com/verl-project/verl/pull/7157
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding, quotes
from watchdog.situation import Situation

CAUSE_CLASS: Final = "other"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    said = situation.log(r"Too many open files|Errno 24|EMFILE")
    if not said:
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed" if crash.earlier(situation, said[0]) else "likely",
        "A rank has no file descriptor left.",
        quotes(said, 2),
    )
