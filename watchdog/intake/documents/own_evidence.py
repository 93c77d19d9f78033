"""Our own `evidence.json` and `raw/rank-*.json`; our reports are recognised and left alone."""

from __future__ import annotations

import re

from watchdog.errors import UnreadableEvidenceError
from watchdog.intake.blocks import Context
from watchdog.intake.parts import Parts
from watchdog.serialization import evidence_from_json

_REPORT = re.compile(
    r"# (?:HUNG|SLOW|CRASHED|HEALTHY|UNKNOWN)\b[^\n]*\n.*?\n\*\*Cause: ", re.DOTALL
)


def score(head: str) -> float:
    """An object that begins with our schema's version, or a report of ours."""
    start = head.lstrip()
    if _REPORT.match(start):
        return 1.0
    return 1.0 if start.startswith("{") and '"schema_version"' in start[:400] else 0.0


def parse(text: str, context: Context, parts: Parts) -> None:
    """Keep the evidence whole; it is merged by process in the end. A report is counted only."""
    if _REPORT.match(text.lstrip()):
        parts.own_reports.append(context.file)
        return
    try:
        parts.evidence.append(evidence_from_json(text))
    except UnreadableEvidenceError as error:
        if '"causes"' in text and '"culprits"' in text:
            parts.own_reports.append(context.file)
        else:
            parts.add_gap(context.file, f"not evidence of this version: {error}"[:300])
