"""The port of a new group is taken by another process.

What hangs
    The members that wait for the store of the group, on a port where somebody else listens; the
    ranks behind them in the barrier.

How it shows
    The earliest error is `EADDRINUSE`, `Address already in use` on the rank that hosts the store;
    `ss -ltnp` names the owner of the port.

What to do
    Take a port that is free and keep it until it is used (bind to 0, or reserve it), outside of
    the ephemeral range. End the job: the other members wait for a server that does not exist.

Not to be confused with
    group_never_joined, where the store is there and a member is missing; a server that tries the
    next port.

Source
    https://github.com/InternLM/xtuner/pull/1828
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "group_rendezvous"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    event = crash.first_error(situation, r"EADDRINUSE|[Aa]ddress already in use|Errno 98\b")
    if event is None or not crash.crashed(situation):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed",
        "The first error of the job is a port that is taken.",
        [quoted(event)],
    )
