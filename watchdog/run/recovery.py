"""A stall that ended after all: the reports that are already written say so."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

MAX_REPORT_BYTES = 64 * 2**20
_WORDS = re.compile(r"; ended after all, after [\d.]+ s$")
_LINE = re.compile(r"\A(#[^\n]*\n)\n(?:\*\*Ended after all\*\*[^\n]*\n\n)?")


def headline_of_ended(headline: str, took_s: float) -> str:
    """The headline of a report, with how long the section took in the end (s)."""
    return f"{_WORDS.sub('', headline)}; ended after all, after {took_s:.0f} s"


def line_of_ended(took_s: float) -> str:
    """The line below the heading of report.md: the same, for people."""
    return f"**Ended after all**, after {took_s:.0f} s: what follows is how it stood before."


def note_end(folder: Path, took_s: float) -> None:
    """Say in report.json and report.md of an incident that it is over. Never raises.

    Several ranks may note their end; the longest time stays. A report that is not there (yet) is
    left alone: what reads incidents looks into `recovered.jsonl` as well.

    Args:
        folder: Of the incident.
        took_s: From the beginning of the section to its end (s).
    """
    try:
        took_s = _noted_in_json(folder / "report.json", took_s)
        _note_in_markdown(folder / "report.md", took_s)
    except (OSError, ValueError, RecursionError):
        return


def _noted_in_json(file: Path, took_s: float) -> float:
    data: Any = json.loads(_text(file))
    if not isinstance(data, dict):
        raise ValueError("not a report")
    told = data.get("incident")
    incident: dict[str, Any] = told if isinstance(told, dict) else {}
    before = incident.get("ended_after_s")
    longest_s = max(took_s, before) if isinstance(before, (int, float)) else took_s
    data["incident"] = {**incident, "ended_after_s": longest_s}
    data["recovered"] = True
    if isinstance(data.get("headline"), str):
        data["headline"] = headline_of_ended(data["headline"], longest_s)
    _replace(file, json.dumps(data, indent=1) + "\n")
    return longest_s


def _note_in_markdown(file: Path, took_s: float) -> None:
    line = line_of_ended(took_s)
    text, count = _LINE.subn(lambda found: f"{found[1]}\n{line}\n\n", _text(file), count=1)
    if count:
        _replace(file, text)


def _text(file: Path) -> str:
    if file.stat().st_size > MAX_REPORT_BYTES:
        raise ValueError("too large")
    return file.read_text(encoding="utf-8", errors="replace")


def _replace(file: Path, text: str) -> None:
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
        os.replace(unfinished, file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def ended_after_s(folder: Path) -> float | None:
    """How long the section of an incident took in the end (s), `None` where it did not end."""
    try:
        with (folder / "recovered.jsonl").open("rb") as stream:
            lines = stream.read(2**20).splitlines()
    except OSError:
        return None
    longest_s = None
    for line in lines:
        try:
            value = json.loads(line)["duration_s"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if isinstance(value, (int, float)):
            longest_s = max(value, longest_s or 0.0)
    return longest_s
