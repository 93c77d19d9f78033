"""One line to paste into a chat: who, where, why, and how much was seen."""

from __future__ import annotations

from watchdog.evidence import Evidence
from watchdog.findings import Diagnosis
from watchdog.reports import wording
from watchdog.reports.incident_info import IncidentInfo
from watchdog.reports.printable import one_line
from watchdog.reports.ranks import ranks_label

FILE_NAME = "line.txt"

_MAX_CHARS = 700


def render(evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None) -> str:
    """The verdict as one line without markup, at most 700 characters."""
    parts = [wording.headline_of_now(evidence, diagnosis, incident)]
    for label, culprit in wording.merged_culprits(diagnosis.verdict.culprits)[:2]:
        parts.append(f"{label} in {wording.short_where(culprit.where)}")
    if not diagnosis.verdict.culprits:
        parts.append(wording.new_reason(diagnosis.verdict))
    groups = wording.waiting_groups(diagnosis)
    if groups:
        most = max(groups, key=lambda group: len(group.ranks))
        parts.append(f"{wording.group_label(most)}: {most.doing}")
    if diagnosis.causes:
        cause = diagnosis.causes[0]
        parts.append(f"cause {wording.cause_label(cause)} ({cause.rule})")
    else:
        parts.append(wording.no_cause_words(diagnosis))
    parts.append(_coverage(evidence, diagnosis))
    path = wording.report_path(incident)
    if path:
        parts.append(path)
    return one_line("; ".join(part.rstrip(".") for part in parts if part), _MAX_CHARS) + "\n"


def _coverage(evidence: Evidence, diagnosis: Diagnosis) -> str:
    """How many ranks were seen, on how many hosts, and which were not."""
    ranks = {p.rank for p in evidence.processes if p.role == "trainer" and p.rank is not None}
    hosts = sorted({process.host for process in evidence.processes if process.host})
    total = f" of {evidence.world_size}" if evidence.world_size else ""
    seen = f"seen {len(ranks)}{total} ranks" if ranks else ""
    place = f"on {', '.join(hosts[:3])}{' …' if len(hosts) > 3 else ''}" if hosts else ""
    missing = ranks_label(diagnosis.verdict.unaccounted)
    words = " ".join(part for part in (seen, place) if part)
    return f"{words}, nothing of {missing}" if missing else words
