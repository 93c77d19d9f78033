"""Evidence and reports into the incident's folder, and the lines for stderr."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from watchdog.evidence import Evidence
from watchdog.incident.folder import EVIDENCE, REPORT, IncidentFolder, NothingWrittenError
from watchdog.incident.size import fitting_json
from watchdog.run.stall_ends import RECOVERED, took_s
from watchdog.timing.stall_context import StallContext

if TYPE_CHECKING:
    from watchdog.findings import Diagnosis
    from watchdog.reports import IncidentInfo

_PREFIX = "[miles-watchdog] "


@dataclass(frozen=True)
class Written:
    """What was written, and what is to be said.

    Attributes:
        json: `report.json`, `None` where it is not there.
        markdown: `report.md`, `None` where it is not there.
        summary: Lines for stderr, without prefix.
    """

    json: Path | None
    markdown: Path | None
    summary: str


def write(
    evidence: Evidence,
    diagnosis: Diagnosis,
    context: StallContext,
    folder: IncidentFolder,
    *,
    max_bytes: int,
    started_at_s: float,
) -> Written:
    """Write evidence and reports, `report.json` last: where it is, all is.

    Never raises: what cannot be written or rendered is said in the summary.

    Args:
        evidence: Of the whole job.
        diagnosis: Of that evidence.
        context: The stall.
        folder: Where to.
        max_bytes: For the evidence.
        started_at_s: When the stall was noticed (wall clock, s).
    """
    troubles: list[str] = []
    _written(folder, EVIDENCE, fitting_json(evidence, max_bytes), troubles)
    paths: dict[str, Path | None] = {}
    for name in ("markdown", "json"):
        info = _info(context, folder, started_at_s)
        text, file_name = _rendered(name, evidence, diagnosis, info, troubles)
        if name == "json" and not text:
            # The others wait for this file: without it each would write a report.
            text, file_name = _bare_json(diagnosis), REPORT
        paths[name] = _written(folder, file_name, text, troubles) if text else None
    info = _info(context, folder, started_at_s)
    lines, _ = _rendered("summary", evidence, diagnosis, info, troubles)
    lines = lines or _bare_summary(evidence, diagnosis, context, folder)
    lines = "".join(line.removeprefix(_PREFIX) for line in lines.splitlines(keepends=True))
    if folder.refusals:
        said = "; ".join(f"{path} refused: {why}" for path, why in folder.refusals.items())
        kept = "the report is in the substitute" if paths.get("json") else "there is no report file"
        troubles.insert(0, f"{said}; {kept}")
    said_troubles = "".join(f"note     {trouble}\n" for trouble in dict.fromkeys(troubles))
    return Written(paths.get("json"), paths.get("markdown"), lines + said_troubles)


def _info(context: StallContext, folder: IncidentFolder, started_at_s: float) -> IncidentInfo:
    from watchdog.reports import IncidentInfo

    # Where evidence lies, the reports come; nowhere, if it could not be written.
    written = folder.find(EVIDENCE)
    place = "" if written is None else str(folder.place)
    ended_s = None if written is None else took_s(written.parent, RECOVERED)
    return IncidentInfo(context.incident_id, context.run_folder.name, place, started_at_s, ended_s)


def _bare_json(diagnosis: Diagnosis) -> str:
    verdict = diagnosis.verdict
    return json.dumps({"schema_version": 1, "state": verdict.state, "reason": verdict.reason})


def _rendered(
    name: str, evidence: Evidence, diagnosis: Diagnosis, info: IncidentInfo, troubles: list[str]
) -> tuple[str, str]:
    try:
        from watchdog.reports import REPORTS

        report = REPORTS[name]
        return report.render(evidence, diagnosis, info), report.FILE_NAME
    except Exception as error:
        troubles.append(f"the {name} report failed: {type(error).__name__}: {error}")
        return "", ""


def _written(folder: IncidentFolder, name: str, text: str, troubles: list[str]) -> Path | None:
    try:
        return folder.write(name, text)
    except NothingWrittenError:
        troubles.append(f"{name} could not be written anywhere")
        return None


def _bare_summary(
    evidence: Evidence, diagnosis: Diagnosis, context: StallContext, folder: IncidentFolder
) -> str:
    """What can be said where the summary itself fails."""
    lines = [
        f"{context.section} {context.index} is stalled for {context.waited_s:.0f} s",
        f"{diagnosis.verdict.state}: {diagnosis.verdict.reason}",
    ]
    lines += [
        f"{process.key}: {process.status} {process.status_detail}, "
        f"phase {process.position.phase or '-'}"
        for process in evidence.processes[:8]
        if process.position is not None
    ]
    lines.append(f"evidence {folder.find(EVIDENCE) or 'not written'}")
    return "".join(f"{line}\n" for line in lines)
