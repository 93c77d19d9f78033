"""Folders that the watchdog wrote: their evidence.json is the evidence, the rest repeats it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from watchdog.intake.documents import own_evidence
from watchdog.intake.parts import Parts
from watchdog.intake.sources import Source

_EVIDENCE = "evidence.json"
_BESIDE = frozenset(
    {
        "report.md",
        "report.json",
        "summary.txt",
        "on_stall.log",
        "recovered.jsonl",
        ".said-recovered",
    }
)
_HEAD_BYTES = 400


def without_retold(sources: Sequence[Source], parts: Parts) -> list[Source]:
    """The sources without those that only repeat an evidence.json of ours among them.

    These are, in the folder of an incident, its reports and the pieces it was merged from; in the
    folder of the run around it, black boxes and the list of syncs. Read as well, they would be a
    second look at processes that are in the evidence already. Whatever else lies there is kept.
    """
    incidents = {
        source.path.parent
        for source in sources
        if source.path.name == _EVIDENCE and _is_ours(source)
    }
    runs = {folder.parent.parent for folder in incidents if folder.parent.name == "incidents"}
    kept = [source for source in sources if not _is_retold(source.path, incidents, runs)]
    if len(kept) < len(sources):
        parts.add_note(
            "evidence.json of the watchdog was read; the reports and raw files beside it tell the "
            "same and were not"
        )
    return kept


def _is_retold(path: Path, incidents: set[Path], runs: set[Path]) -> bool:
    folder = path.parent
    if folder in incidents:
        return path.name in _BESIDE
    if folder.name == "raw":
        return folder.parent in incidents and path.suffix == ".json"
    if folder.name == "ranks":
        return folder.parent in runs and path.suffix in (".blackbox", ".ending")
    return folder in runs and path.name == "syncs.jsonl"


def _is_ours(source: Source) -> bool:
    try:
        with source.open() as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError:
        return False
    return own_evidence.score(head.decode("utf-8", "replace")) > 0
