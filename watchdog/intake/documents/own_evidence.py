"""Our own `evidence.json` and `raw/rank-*.json`; our reports are recognised and left alone."""

from __future__ import annotations

from watchdog.errors import UnreadableEvidenceError
from watchdog.intake.blocks import Context
from watchdog.intake.parts import Parts
from watchdog.serialization import evidence_from_json


def score(head: str) -> float:
    """An object that begins with our schema's version."""
    start = head.lstrip()
    return 1.0 if start.startswith("{") and '"schema_version"' in start[:400] else 0.0


def parse(text: str, context: Context, parts: Parts) -> None:
    """Keep the evidence whole; it is merged by process in the end."""
    try:
        parts.evidence.append(evidence_from_json(text))
    except UnreadableEvidenceError as error:
        if '"causes"' in text and '"culprits"' in text:
            parts.add_note(f"{context.file}: a report of ours, not read")
        else:
            parts.add_gap(context.file, f"not evidence of this version: {error}"[:300])
