"""Which incident a report is about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IncidentInfo:
    """Name and place of an incident.

    Attributes:
        id: Name of its folder; the same for all ranks of the job.
        run: Name of the run's folder, "" where unknown.
        folder: Absolute path of the incident's folder, "" when nothing was written.
        started_at_s: Wall-clock time at which the stall was noticed (s).
        ended_after_s: How long the section took in the end (s), `None` where it did not end.
        aborted_after_s: How long after the stall the watchdog ended the run (s), `None` where it
            did not.
    """

    id: str
    run: str = ""
    folder: str = ""
    started_at_s: float | None = None
    ended_after_s: float | None = None
    aborted_after_s: float | None = None
