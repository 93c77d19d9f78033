"""A stall of the job becomes one incident: one folder, one report, however many ranks noticed."""

from watchdog.incident.flow import (
    IncidentResult,
    Seams,
    first_sample,
    handle_stall,
    node_evidence,
)

__all__ = ["IncidentResult", "Seams", "first_sample", "handle_stall", "node_evidence"]
