"""A stall of the job becomes one incident: one folder, one report, however many ranks noticed."""

from watchdog.incident.flow import (
    IncidentResult,
    Seams,
    first_sample,
    handle_stall,
    node_evidence,
)
from watchdog.incident.from_outside import silent_node_evidence

__all__ = [
    "IncidentResult",
    "Seams",
    "first_sample",
    "handle_stall",
    "node_evidence",
    "silent_node_evidence",
]
