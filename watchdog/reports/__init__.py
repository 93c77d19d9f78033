"""The diagnosis told to people and machines: one module a format, and the table of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from watchdog.evidence import Evidence
from watchdog.findings import Diagnosis
from watchdog.reports import chat_line, json_report, markdown, summary, terminal
from watchdog.reports.incident_info import IncidentInfo

__all__ = ["REPORTS", "IncidentInfo", "Report"]


class Report(Protocol):
    """What a module of this package must have to be a format.

    Attributes:
        FILE_NAME: Name of its file in an incident's folder.
    """

    FILE_NAME: str

    def render(
        self, evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None
    ) -> str:
        """The whole report as text that ends with a line feed."""
        ...


# Modules, not functions: jinja2 and rich are imported when a report is rendered, so that a
# process under watch pays for neither before something hangs.
REPORTS: Mapping[str, Report] = {
    "chat": chat_line,
    "json": json_report,
    "markdown": markdown,
    "summary": summary,
    "terminal": terminal,
}
