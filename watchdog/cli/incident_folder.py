"""Run folders and incident folders, as the watchdog leaves them, read back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchdog.errors import UnusableInputError
from watchdog.evidence import Evidence
from watchdog.intake.sources import open_regular, regular_text
from watchdog.reports.incident_info import IncidentInfo
from watchdog.run.stall_ends import STALL_ENDS, took_s
from watchdog.serialization import evidence_from_json

_MAX_REPORT_BYTES = 64 * 2**20
_MAX_EVIDENCE_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Incident:
    """One incident as its report.json tells it.

    Attributes:
        folder: Where it lies.
        info: Name, run and time.
        headline: The report's first sentence; says what is wrong where it cannot be read.
        state: State of the verdict, "" where there is no readable report.
        cause: Class and confidence of the first cause, "" for none.
        rule: Name of the rule that found it, "" for none.
    """

    folder: Path
    info: IncidentInfo
    headline: str
    state: str = ""
    cause: str = ""
    rule: str = ""


@dataclass(frozen=True)
class Run:
    """One run of a job.

    Attributes:
        folder: Where it lies.
        num_syncs: Lines of syncs.jsonl: weight syncs that ended, over all ranks.
        incidents: Newest first.
    """

    folder: Path
    num_syncs: int
    incidents: tuple[Incident, ...]


class NoIncidentError(UnusableInputError):
    """No run or incident lies at a path. The message names it and says what is there."""

    help_text = (
        "Pass an incident's folder, or the evidence.json in it; `miles-watchdog incidents FOLDER` "
        "lists those below a folder of runs."
    )


def runs_below(folder: Path) -> list[Run]:
    """The runs in `folder`, or the one that `folder` is itself; last changed first.

    Raises:
        NoIncidentError: It is not a folder.
    """
    if not folder.is_dir():
        raise NoIncidentError(
            f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}"
        )
    below = _folders(folder)
    # What a demo leaves holds a folder of runs of its own, one level deeper.
    deeper = [path for each in below if not _is_run(each) for path in _folders(each)]
    runs = [path for path in (folder, *below, *deeper) if _is_run(path)]
    runs.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    return [Run(path, _num_lines(path / "syncs.jsonl"), tuple(_incidents(path))) for path in runs]


def load_incident(path: Path) -> tuple[Evidence, IncidentInfo]:
    """Evidence and name of an incident, by its folder or by its evidence.json.

    Raises:
        NoIncidentError: There is no evidence.json at `path`.
        UnreadableEvidenceError: It is not evidence, or of another version.
    """
    file = path / "evidence.json" if path.is_dir() else path
    try:
        text = regular_text(file, _MAX_EVIDENCE_BYTES)
    except OSError as error:
        raise NoIncidentError(f"{file}: {error.strerror or error}") from error
    folder = file.parent.absolute()
    recorded = _report(folder).get("incident") or {}
    started_at_s = recorded.get("started_at_s")
    written = (folder / "report.md").exists()
    info = IncidentInfo(
        id=folder.name,
        run=folder.parent.parent.name if folder.parent.name == "incidents" else "",
        folder=str(folder) if written else "",
        started_at_s=started_at_s if isinstance(started_at_s, (int, float)) else None,
        **_ends(folder),
    )
    return evidence_from_json(text), info


def _folders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except OSError:
        return []


def _is_run(path: Path) -> bool:
    return any((path / name).exists() for name in ("ranks", "incidents", "syncs.jsonl"))


def _incidents(run: Path) -> list[Incident]:
    try:
        folders = [path for path in (run / "incidents").iterdir() if path.is_dir()]
    except OSError:
        return []
    found = [_incident(path, run) for path in folders]
    return sorted(found, key=lambda incident: incident.info.started_at_s or 0, reverse=True)


def _incident(folder: Path, run: Path) -> Incident:
    report = _report(folder)
    recorded = report.get("incident") or {}
    started_at_s = recorded.get("started_at_s")
    if not isinstance(started_at_s, (int, float)):
        started_at_s = folder.stat().st_mtime
    ends = _ends(folder)
    place = str(folder.absolute())
    info = IncidentInfo(folder.name, run.name, place, started_at_s, **ends)
    causes = report.get("causes") or [{}]
    cause = " ".join(str(causes[0].get(key, "")) for key in ("class", "confidence")).strip()
    headline = str(report.get("headline") or "no readable report.json")
    for end in STALL_ENDS:
        if (after_s := ends[end.key]) is not None:
            headline = end.headline(headline, after_s)
    rule = str(causes[0].get("rule") or "")
    return Incident(folder, info, headline, str(report.get("state", "")), cause, rule)


def _ends(folder: Path) -> dict[str, float | None]:
    return {end.key: took_s(folder, end) for end in STALL_ENDS}


def _report(folder: Path) -> dict[str, Any]:
    """The report, {} where it is missing, too large, or not what the watchdog writes."""
    file = folder / "report.json"
    try:
        data = json.loads(regular_text(file, _MAX_REPORT_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    is_report = isinstance(data, dict) and isinstance(data.get("incident") or {}, dict)
    causes = data.get("causes") or [] if is_report else None
    if not isinstance(causes, list) or not all(isinstance(cause, dict) for cause in causes):
        return {}
    return data if is_report else {}


def _num_lines(file: Path) -> int:
    try:
        with open_regular(file) as stream:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(2**20), b""))
    except OSError:
        return 0
