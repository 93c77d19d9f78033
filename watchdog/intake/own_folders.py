"""Folders that the watchdog wrote: their evidence.json is the evidence, the rest repeats it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
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
        "aborted.jsonl",
        ".said-recovered",
    }
)
_HEAD_BYTES = 400
_COLLECTED_AT = re.compile(rb'"collected_at_s": ?([0-9.eE+]+)')


def without_retold(sources: Sequence[Source], parts: Parts) -> list[Source]:
    """The sources without those that only repeat an evidence.json of ours among them.

    These are, in the folder of an incident, its reports and the pieces it was merged from; in the
    folder of the run around it, black boxes and the list of syncs. Read as well, they would be a
    second look at processes that are in the evidence already. Whatever else lies there is kept.

    Of a run with several incidents the newest one is kept: one stall each, and ranks that stood
    elsewhere in another one do not stand there now.
    """
    incidents = {
        source.path.parent: source
        for source in sources
        if source.path.name == _EVIDENCE and _is_ours(source)
    }
    older = _older_ones(incidents, parts)
    sources = [source for source in sources if older.isdisjoint(source.path.parents)]
    runs = {folder.parent.parent for folder in incidents if folder.parent.name == "incidents"}
    kept = [source for source in sources if not _is_retold(source.path, incidents.keys(), runs)]
    if len(kept) < len(sources):
        parts.add_note(
            "evidence.json of the watchdog was read; the reports and raw files beside it tell the "
            "same and were not"
        )
    return kept


def _older_ones(incidents: Mapping[Path, Source], parts: Parts) -> set[Path]:
    """The folders of incidents that a newer one of the same run has followed."""
    of_run: dict[Path, list[Path]] = defaultdict(list)
    for folder in incidents:
        if folder.parent.name == "incidents":
            of_run[folder.parent].append(folder)
    older: set[Path] = set()
    for folders in of_run.values():
        *others, newest = sorted(folders, key=lambda folder: _collected_at_s(incidents[folder]))
        older.update(others)
        if others:
            names = ", ".join(sorted(folder.name for folder in others)[:5])
            parts.add_note(
                f"of {len(folders)} incidents of one run the newest was read, {newest.name}; "
                f"to read another one ({names}), hand over its folder alone"
            )
    return older


def _collected_at_s(source: Source) -> float:
    """When the evidence was collected (wall clock, s), 0 where it does not say."""
    try:
        with source.open() as stream:
            said = _COLLECTED_AT.findall(stream.read())
        return float(said[-1]) if said else 0.0
    except (OSError, ValueError):
        return 0.0


def _is_retold(path: Path, incidents: Set[Path], runs: Set[Path]) -> bool:
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
