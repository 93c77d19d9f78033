"""The report on a terminal: colour on a tty, plain text in a pipe."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING

from watchdog.evidence import Evidence
from watchdog.findings import Diagnosis, Finding
from watchdog.reports import wording
from watchdog.reports.incident_info import IncidentInfo
from watchdog.reports.limits import Limits
from watchdog.reports.printable import one_line, printable
from watchdog.reports.ranks import ranks_label
from watchdog.reports.stack_text import group_stacks
from watchdog.reports.wrapping import fitted_call, wrapped

if TYPE_CHECKING:
    from rich.console import Console

FILE_NAME = "report.txt"

_LIMITS = Limits(text_chars=600, entries=12, stacks=2, threads=1, frames=14, rows=12)
_MIN_COLUMNS = 40
_PLAIN_COLUMNS = 100
_MAX_COLUMNS = 120
_MAX_LABEL_COLUMNS = 28
_GAP = 2
_STATE_STYLE = {"hung": "bold red", "crashed": "bold red", "slow": "bold yellow"}
_CONFIDENCE_STYLE = {"confirmed": "bold green", "likely": "bold yellow", "possible": "bold"}


def render(evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None) -> str:
    """The plain text that a pipe would get, 100 columns wide."""
    return _plain(_PLAIN_COLUMNS, evidence, diagnosis, incident)


def _plain(
    columns: int, evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None
) -> str:
    from rich.console import Console

    page = io.StringIO()
    console = Console(
        file=page, width=columns, no_color=True, force_terminal=False, highlight=False
    )
    _print(console, evidence, diagnosis, incident)
    # Columns are padded to their width; nobody wants that in a file.
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())


def print_report(evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None) -> None:
    """Print the report to stdout: in colour on a terminal, plain text anywhere else.

    Where there is no terminal, `COLUMNS` says how wide it may be.
    """
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        columns = shutil.get_terminal_size((_PLAIN_COLUMNS, 24)).columns
        columns = min(max(columns, _MIN_COLUMNS), _MAX_COLUMNS)
        console.file.write(_plain(columns, evidence, diagnosis, incident))
        return
    console.width = min(console.width, _MAX_COLUMNS)
    _print(console, evidence, diagnosis, incident)


def _print(
    out: Console, evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None
) -> None:
    # Every quoted text is passed as `Text`, never as a markup string, so that a log line with
    # brackets in it stays a log line.
    page = _Page(out)
    style = _STATE_STYLE.get(diagnosis.verdict.state, "bold")
    page.line(wording.headline_of_now(evidence, diagnosis, incident), style)
    page.facts(_facts(evidence, diagnosis, incident))
    _print_causes(page, diagnosis)
    _print_groups(page, diagnosis)
    _print_rest(page, evidence, diagnosis)
    path = wording.report_path(incident)
    if path:
        page.line("")
        page.verbatim(f"Report: {path}")


def _facts(
    evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None
) -> Iterable[tuple[str, str]]:
    verdict = diagnosis.verdict
    merged = wording.merged_culprits(verdict.culprits)
    for label, culprit in merged[: _LIMITS.entries]:
        yield "culprit", f"{label}\nat {one_line(culprit.where)}\n{one_line(culprit.why)}"
    if len(merged) > _LIMITS.entries:
        yield "", f"and {len(merged) - _LIMITS.entries} more places"
    yield "reason", wording.new_reason(verdict)
    yield "progress", wording.new_progress(verdict)
    for error in wording.untold_errors(evidence, diagnosis):
        yield "logged", one_line(error)
    yield "stall", wording.stall_words(evidence.stall) if evidence.stall else ""
    yield "silent", ranks_label(verdict.unaccounted)
    yield "incident", incident.id if incident else ""


def _print_causes(page: _Page, diagnosis: Diagnosis) -> None:
    if not diagnosis.causes and diagnosis.verdict.state != "healthy":
        page.heading("Why")
        page.line(f"No cause named: {wording.no_cause_words(diagnosis)}.")
    causes = diagnosis.causes[: _LIMITS.entries]
    for index, (cause, supports) in enumerate(wording.new_supports(causes)):
        page.heading("Why" if index == 0 else "Also fits")
        name = f"{wording.cause_label(cause)} ({cause.rule})"
        if index and cause.confidence == "possible" and causes[0].confidence == "confirmed":
            page.line(f"{name}: {cause.summary}")  # there is no question any more
            continue
        page.line(name, _style_of(cause))
        page.line(cause.summary)
        # Who was just woken reads this far: what to do comes before what speaks for it.
        page.facts([("do", cause.remedy)])
        page.bullets("+", supports)
        page.bullets("-", cause.refutes)
        page.facts([("known from", cause.source)])
    if diagnosis.refuted:
        page.heading("Ruled out")
        page.bullets("-", [f"{r.cause_class} ({r.rule}): {r.because}" for r in diagnosis.refuted])


def _style_of(cause: Finding) -> str:
    return _CONFIDENCE_STYLE.get(cause.confidence, "")


def _print_groups(page: _Page, diagnosis: Diagnosis) -> None:
    if not diagnosis.verdict.groups and not diagnosis.verdict.chain:
        return
    page.heading("Who waits where")
    groups = diagnosis.verdict.groups
    page.facts(
        (wording.group_label(group), wording.group_words(group))
        for group in groups[: _LIMITS.entries]
    )
    if len(groups) > _LIMITS.entries:
        page.line(f"and {len(groups) - _LIMITS.entries} more groups")
    page.bullets("→", diagnosis.verdict.chain)


def _print_rest(page: _Page, evidence: Evidence, diagnosis: Diagnosis) -> None:
    for block in group_stacks(evidence, diagnosis, _LIMITS):
        page.heading(f"Stack of {block.title}")
        page.verbatim(block.text)
    if diagnosis.collect_next:
        page.heading("What would settle it")
        page.bullets("-", diagnosis.collect_next)
    gaps = wording.all_gaps(evidence)
    if gaps:
        page.heading("What could not be had")
        page.bullets("-", [_gap_words(owner, gap.what, gap.why) for owner, gap in gaps])
    if evidence.notes:
        page.heading("How it was read")
        page.bullets("-", evidence.notes)


def _gap_words(owner: str, what: str, why: str) -> str:
    return f"{what} ({owner}): {why}" if owner else f"{what}: {why}"


class _Page:
    """Writes the few shapes that the report is made of, everything escaped."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, text: str, style: str = "") -> None:
        for part in wrapped(one_line(text, _LIMITS.text_chars), self._console.width):
            self._put((part, style))

    def heading(self, text: str) -> None:
        self._console.print()
        self.line(text, "bold cyan")

    def verbatim(self, text: str) -> None:
        for line in printable(text).splitlines():
            self._put((fitted_call(line, self._console.width), ""))

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Label and text in two columns; pairs without text are left out."""
        from rich.cells import cell_len

        told = [(one_line(label, 80), text) for label, text in pairs if text]
        widest = min(_MAX_LABEL_COLUMNS, self._console.width // 4)
        labels = [wrapped(label, widest) for label, _ in told]
        left = max((cell_len(part) for label in labels for part in label), default=0)
        for label, (_, text) in zip(labels, told, strict=True):
            body = [
                line
                for part in text.split("\n")
                for line in wrapped(
                    one_line(part, _LIMITS.text_chars), self._console.width - left - _GAP
                )
            ]
            for head, line in zip_longest(label, body, fillvalue=""):
                gap = " " * (left + _GAP - cell_len(head)) if line else ""
                self._put((head + gap, "bold"), (line, ""))

    def bullets(self, sign: str, items: Iterable[str]) -> None:
        everything = list(items)
        shown = everything[: _LIMITS.entries]
        self.facts((sign, item) for item in shown)
        if len(everything) > len(shown):
            self.line(f"and {len(everything) - len(shown)} more")

    def _put(self, *parts: tuple[str, str]) -> None:
        """One line, its parts with their style; what is too wide is the terminal's to break."""
        from rich.text import Text

        self._console.print(Text.assemble(*parts), soft_wrap=True)
