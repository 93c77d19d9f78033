"""The statuses that the commands, and processes ended on the watchdog's behalf, end with."""

from __future__ import annotations

from typing import NamedTuple

DONE = 0
FAILED = 1
UNUSABLE = 2
NO_CAUSE = 3

FAULT = 70
"""EX_SOFTWARE of sysexits.h: the fault is this program's."""

STALLED = 86
"""A rank that `MILES_WATCHDOG_ABORT_AFTER` ended. Outside of what Python (1, 2, 120), shells
(126 to 128 and signals above) and sysexits.h (64 to 78) use, so that a launcher's log shows at
once whose it is."""


BROKEN_PIPE = 141
"""What a shell shows for a program that ended by SIGPIPE: who read the output has seen enough."""


class ExitStatus(NamedTuple):
    """One line of the README's table.

    Attributes:
        who: Subcommands, or `all`, or a rank of the run.
        status: The status.
        meaning: What it says.
    """

    who: str
    status: int
    meaning: str


TABLE = (
    ExitStatus("`diagnose`, `attach`", DONE, "a cause was named"),
    ExitStatus(
        "`diagnose`, `attach`",
        NO_CAUSE,
        "none could be named; the verdict and what to collect next are printed",
    ),
    ExitStatus(
        "`check`",
        FAILED,
        "with `--strict`: a hazard that is `likely` or `certain`; with `--strict-suspect`: any",
    ),
    ExitStatus("`demo`", FAILED, "something else happened than what was to be shown"),
    ExitStatus("all others", DONE, "done"),
    ExitStatus(
        "all", UNUSABLE, "the input or the command line cannot be used; the message says what"
    ),
    ExitStatus("all", FAULT, "a fault of miles-watchdog; `--debug` shows where"),
    ExitStatus(
        "all",
        BROKEN_PIPE,
        "who read the output left before its end, as `… \\| head -1` does; not a fault",
    ),
    ExitStatus(
        "a rank of the run", STALLED, "ended by the watchdog, as `MILES_WATCHDOG_ABORT_AFTER` asks"
    ),
)
"""Every status, as the README has it."""
