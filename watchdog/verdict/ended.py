"""Did the job end while somebody looked at it? Then nobody holds it up."""

from __future__ import annotations

import re

from watchdog.situation import Situation
from watchdog.verdict.judgement import Judgement, names_of

MEANWHILE = "ended between the two looks"
"""How the evidence of a process begins that was there at the first look and gone at the second."""

_ENDED_BADLY = re.compile(r"signal|exit status [1-9]|memory")


def ended_meanwhile(situation: Situation) -> Judgement | None:
    """Every rank was there at the first look and gone at the second, and nothing says of what.

    One that was killed, or an error in the logs, is told by who judges deaths and errors.
    """
    details = [process.status_detail for process in situation.trainers]
    if not details or not all(detail.startswith(MEANWHILE) for detail in details):
        return None
    everybody = [process.status_detail for process in situation.evidence.processes]
    if any(_ENDED_BADLY.search(detail) for detail in everybody):
        return None
    if situation.logs.errors or situation.logs.deaths:
        return None
    who = names_of(situation.trainers)
    return Judgement(
        "unknown",
        f"The job ended while it was looked at: {who} ran at the first look and had ended by the "
        "second. With what status is not seen from outside, and no log that was read shows an "
        "error: the launcher's or the scheduler's own word decides.",
    )
