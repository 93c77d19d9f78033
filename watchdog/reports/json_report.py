"""The report for machines: every key always present, `null` where nothing is known."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from watchdog.evidence import Evidence, Process
from watchdog.findings import Diagnosis, Finding
from watchdog.reports import wording
from watchdog.reports.incident_info import IncidentInfo
from watchdog.run.stall_ends import STALL_ENDS

FILE_NAME = "report.json"

REPORT_SCHEMA_VERSION = 1


def render(evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None) -> str:
    """Indented JSON, pure ASCII, so that no log line can break whoever reads it."""
    return json.dumps(report_data(evidence, diagnosis, incident), indent=1) + "\n"


def report_data(
    evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None
) -> dict[str, Any]:
    """The report as plain data; docs/report-json.md documents the keys."""
    return {
        "schema_version": REPORT_SCHEMA_VERSION,
        "tool": {"name": "miles-watchdog", "version": _tool_version()},
        "headline": wording.headline_of_now(evidence, diagnosis, incident),
        **{one.flag: wording.took_s(incident, one) is not None for one in STALL_ENDS},
        **_verdict(diagnosis),
        "causes": [_cause(cause) for cause in diagnosis.causes],
        "refuted": [
            {"rule": item.rule, "class": item.cause_class, "because": item.because}
            for item in diagnosis.refuted
        ],
        "collect_next": list(diagnosis.collect_next),
        "incident": asdict(incident) if incident else None,
        "stall": asdict(evidence.stall) if evidence.stall else None,
        **_context(evidence),
    }


def _verdict(diagnosis: Diagnosis) -> dict[str, Any]:
    verdict = diagnosis.verdict
    return {
        "state": verdict.state,
        "reason": verdict.reason,
        "culprits": [asdict(culprit) for culprit in verdict.culprits],
        "waiting": [asdict(group) for group in wording.waiting_groups(diagnosis)],
        "groups": [asdict(group) for group in verdict.groups],
        "chain": list(verdict.chain),
        "unaccounted": list(verdict.unaccounted),
        "progress": verdict.progress,
    }


def _context(evidence: Evidence) -> dict[str, Any]:
    return {
        "origin": evidence.origin,
        "framework": evidence.framework,
        "world_size": evidence.world_size,
        "collected_at_s": evidence.collected_at_s,
        "processes": [_process(process) for process in evidence.processes],
        "flags": [asdict(flag) for flag in evidence.flags],
        "environment": dict(evidence.environment),
        "versions": dict(evidence.versions),
        "gaps": [{"process": owner, **asdict(gap)} for owner, gap in wording.all_gaps(evidence)],
        "notes": list(evidence.notes),
    }


def _cause(cause: Finding) -> dict[str, Any]:
    data = asdict(cause)
    return {"class": data.pop("cause_class"), **data}


def _process(process: Process) -> dict[str, Any]:
    position = process.position
    return {
        "key": process.key,
        "role": process.role,
        "rank": process.rank,
        "engine": process.engine,
        "worker": process.worker,
        "pid": process.pid,
        "host": process.host,
        "status": process.status,
        "status_detail": process.status_detail,
        "section": position.section if position else "",
        "phase": position.phase if position else "",
        "phase_age_s": position.phase_age_s if position else None,
        "num_stack_samples": len(process.stacks),
        "stack_source": process.stacks[-1].source if process.stacks else "",
        "identified_by": process.identified_by,
    }


def _tool_version() -> str:
    try:
        return version("miles-watchdog")
    except PackageNotFoundError:  # a source tree that was never installed
        return "unknown"
