"""The report for a bug tracker: verdict first, evidence after, at most 60 kB."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from watchdog.counting import counted
from watchdog.evidence import Evidence
from watchdog.findings import Diagnosis
from watchdog.reports import wording
from watchdog.reports.incident_info import IncidentInfo
from watchdog.reports.limits import STEPS, Limits
from watchdog.reports.printable import (
    html_text,
    markdown_code,
    markdown_fence,
    markdown_text,
    without_bars,
)
from watchdog.reports.stack_text import culprit_details, group_stacks

if TYPE_CHECKING:
    from jinja2 import Template

FILE_NAME = "report.md"

MAX_BYTES = 60_000
"""Trackers refuse a comment of more than 65,536 characters."""


def render(evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None) -> str:
    """GitHub-flavoured markdown of at most `MAX_BYTES`; what was left out is counted in it."""
    text = ""
    for limits in STEPS:
        text = _rendered(evidence, diagnosis, incident, limits)
        if len(text.encode()) <= MAX_BYTES:
            break
    return text


def _rendered(
    evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None, limits: Limits
) -> str:
    text = partial(markdown_text, max_chars=limits.text_chars)
    code = partial(markdown_code, max_chars=limits.text_chars)
    return _template().render(
        evidence=evidence,
        verdict=diagnosis.verdict,
        diagnosis=diagnosis,
        incident=incident,
        limits=limits,
        wording=wording,
        counted=counted,
        text=text,
        code=code,
        text_cell=partial(_cell, write=text),
        code_cell=partial(_cell, write=code),
        html=partial(html_text, max_chars=limits.text_chars),
        fence=markdown_fence,
        time=utc_time,
        head=partial(_head, limits=limits),
        culprit_details=culprit_details(evidence, diagnosis, limits),
        group_stacks=group_stacks(evidence, diagnosis, limits),
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    # Escaping for markdown is the filters' work; HTML escapes would show inside code spans.
    environment = Environment(
        loader=PackageLoader("watchdog.reports"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.md.jinja")


def _head(items: Any, count: str, *, limits: Limits) -> tuple[list[Any], int]:
    """The first items as far as the limits allow, and how many are left out."""
    everything = list(items)
    shown = everything[: getattr(limits, count)]
    return shown, len(everything) - len(shown)


def _cell(text: str, write: Callable[[str], str]) -> str:
    return write(without_bars(text))


def utc_time(time_s: float | None) -> str:
    """`2025-01-31 03:14:15 UTC`, "" for `None` or a time that no calendar has."""
    if time_s is None:
        return ""
    try:
        moment = datetime.fromtimestamp(time_s, tz=timezone.utc)
    except (OverflowError, OSError, ValueError):
        return ""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
