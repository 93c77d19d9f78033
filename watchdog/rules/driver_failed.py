"""The driver failed, and the actors wait for a next task.

What hangs
    Nothing: trainers and engines are idle in their loops. The job looks alive because something
    else (a tracker that uploads, an actor with a lifetime of its own) keeps it.

How it shows
    The last lines of the driver's log are a traceback; no driver process is left; every actor is
    in `main_loop`, every scheduler waits for requests.

What to do
    Correct the error in the traceback. End the job when the driver fails.

Not to be confused with
    Actors that wait between two steps, where the driver's log goes on; an error that the driver
    handled.

Source
    https://github.com/THUDM/slime/pull/1631
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation
from watchdog.verdict import verdict_of
from watchdog.verdict.driver import driver_error

CAUSE_CLASS: Final = "other"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    event = driver_error(situation)
    verdict = verdict_of(situation)
    if event is None or verdict.state != "crashed":
        return None
    if [culprit.process for culprit in verdict.culprits] != ["driver"]:
        return None
    idle = situation.doing("idle")
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        "The driver failed, and its actors are idle.",
        [quoted(event), *(seen(situation, p) for p in idle[:2])],
    )
