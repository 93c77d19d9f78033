"""About ten lines for stderr, at the moment of the stall."""

from __future__ import annotations

from collections.abc import Iterator

from watchdog.evidence import Evidence
from watchdog.findings import Diagnosis
from watchdog.reports import wording
from watchdog.reports.incident_info import IncidentInfo
from watchdog.reports.printable import one_line, printable
from watchdog.reports.ranks import ranks_label
from watchdog.reports.wrapping import wrapped

FILE_NAME = "summary.txt"
PREFIX = "[miles-watchdog]"

_WIDTH = 100
_LABEL_CHARS = 8
_MAX_CULPRITS = 2
_MAX_GROUPS = 3


def render(evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None) -> str:
    """The verdict for a log that many ranks write to at once.

    Returns:
        Plain lines of at most 100 columns, each with the prefix and a line feed. Only the
        line with the report's path may be longer: a path that is cut cannot be opened.
    """
    lines = _wrapped(None, one_line(wording.headline_of_now(evidence, diagnosis, incident)), 2)
    for label, text, max_lines in _items(evidence, diagnosis):
        lines += _wrapped(label, one_line(text, 1000), max_lines)
    path = wording.report_path(incident)
    if path:
        lines.append(f"{PREFIX} {'report':<{_LABEL_CHARS}} {printable(path)}")
    return "".join(f"{line}\n" for line in lines)


def _items(evidence: Evidence, diagnosis: Diagnosis) -> Iterator[tuple[str, str, int]]:
    """Label, text, and how many lines it may take."""
    verdict = diagnosis.verdict
    merged = wording.merged_culprits(verdict.culprits)
    for label, culprit in merged[:_MAX_CULPRITS]:
        yield "culprit", f"{label}: {wording.short_where(culprit.where)}", 2
        yield "", culprit.why, 1
    if len(merged) > _MAX_CULPRITS:
        yield "", f"and {len(merged) - _MAX_CULPRITS} more places, see the report", 1
    if not merged:
        yield "why", verdict.reason, 2
    if evidence.stall:
        yield "stall", wording.stall_words(evidence.stall), 1
    yield from _cause(diagnosis)
    yield from _others(diagnosis)


def _cause(diagnosis: Diagnosis) -> Iterator[tuple[str, str, int]]:
    if diagnosis.causes:
        cause = diagnosis.causes[0]
        yield "cause", f"{cause.rule}, {cause.confidence}: {cause.summary}", 2
        if cause.remedy:
            yield "do", cause.remedy, 3
        return
    if diagnosis.verdict.progress:
        yield "progress", diagnosis.verdict.progress, 2
    yield "cause", wording.no_cause_words(diagnosis), 1
    for step in diagnosis.collect_next[:1]:
        yield "next", step, 2


def _others(diagnosis: Diagnosis) -> Iterator[tuple[str, str, int]]:
    # Ranks first: engines that idle meanwhile are many, and nobody's question.
    groups = sorted(wording.waiting_groups(diagnosis), key=lambda group: not group.ranks)
    for group in groups[:_MAX_GROUPS]:
        yield "waiting", f"{wording.group_label(group)}: {wording.group_words(group)}", 1
    if len(groups) > _MAX_GROUPS:
        yield "", f"and {len(groups) - _MAX_GROUPS} more groups, see the report", 1
    if diagnosis.verdict.unaccounted:
        yield "silent", f"{ranks_label(diagnosis.verdict.unaccounted)}: no sign at all", 1


def _wrapped(label: str | None, text: str, max_lines: int) -> list[str]:
    """Prefixed lines; `None` is the headline, "" goes on under the label before it."""
    head = "" if label is None else f"{label:<{_LABEL_CHARS}} "
    width = _WIDTH - len(PREFIX) - 1 - len(head)
    parts = wrapped(text, width, fold=True)
    if len(parts) > max_lines:
        # The last line that is shown may have to lose a word for the sign that there is more.
        last = wrapped(parts[max_lines - 1], width - 2, fold=True)[0]
        parts = [*parts[: max_lines - 1], f"{last} …"]
    blank = " " * len(head)
    return [f"{PREFIX} {head if i == 0 else blank}{part}" for i, part in enumerate(parts)]
