"""What became of a stall after its report: the reports that are already written say so."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_REPORT_BYTES = 64 * 2**20


@dataclass(frozen=True)
class StallEnd:
    """One way in which a stall comes to its end.

    Attributes:
        flag: Key of report.json that is true then. `<flag>.jsonl` in the incident's folder holds a
            line a rank, with the time in `duration_s`.
        key: Key of that time (s) within the report's `incident`.
        words: What is added to the headline, `{}` for the time.
        line: What stands below the heading of report.md, `{}` for the time.
    """

    flag: str
    key: str
    words: str
    line: str

    @property
    def file_name(self) -> str:
        """Of the lines in the incident's folder."""
        return f"{self.flag}.jsonl"

    def headline(self, headline: str, took_s: float) -> str:
        """The headline of a report, with how it ended and after what time (s)."""
        said = re.escape(f"; {self.words}").replace(r"\{\}", r"[\d.]+")
        return f"{re.sub(said, '', headline)}; {self.words.format(f'{took_s:.0f}')}"

    def markdown(self, took_s: float) -> str:
        """The line for report.md."""
        return self.line.format(f"{took_s:.0f}")


RECOVERED = StallEnd(
    "recovered",
    "ended_after_s",
    "ended after all, after {} s",
    "**Ended after all**, after {} s: what follows is how it stood before.",
)
ABORTED = StallEnd(
    "aborted",
    "aborted_after_s",
    "the watchdog ended the run {} s after the stall",
    "**The watchdog ended the run** (`MILES_WATCHDOG_ABORT_AFTER`), {} s after the stall.",
)
STALL_ENDS = (RECOVERED, ABORTED)


def note(folder: Path, end: StallEnd, took_s: float) -> None:
    """Say in report.json and report.md of an incident how it ended. Never raises.

    Several ranks may note their end; the longest time stays. A report that is not there (yet) is
    left alone: what reads incidents looks into the file of the end as well.

    Args:
        folder: Of the incident.
        end: How it ended.
        took_s: From the beginning of the section to its end, or from the stall to the end of the
            run (s).
    """
    try:
        took_s = _noted_in_json(folder / "report.json", end, took_s)
        _note_in_markdown(folder / "report.md", end, took_s)
    except (OSError, ValueError, RecursionError):
        return


def _noted_in_json(file: Path, end: StallEnd, took_s: float) -> float:
    data: Any = json.loads(_text(file))
    if not isinstance(data, dict):
        raise ValueError("not a report")
    told = data.get("incident")
    incident: dict[str, Any] = told if isinstance(told, dict) else {}
    before = incident.get(end.key)
    longest_s = max(took_s, before) if isinstance(before, (int, float)) else took_s
    data["incident"] = {**incident, end.key: longest_s}
    data[end.flag] = True
    if isinstance(data.get("headline"), str):
        data["headline"] = end.headline(data["headline"], longest_s)
    _replace(file, json.dumps(data, indent=1) + "\n")
    return longest_s


def _note_in_markdown(file: Path, end: StallEnd, took_s: float) -> None:
    said = re.escape(end.line).replace(r"\{\}", r"[\d.]+")
    place = re.compile(rf"\A(#[^\n]*\n)\n(?:{said}\n\n)?")
    line = end.markdown(took_s)
    text, count = place.subn(lambda found: f"{found[1]}\n{line}\n\n", _text(file), count=1)
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


def took_s(folder: Path, end: StallEnd) -> float | None:
    """After what time an incident ended in this way (s), `None` where it did not."""
    try:
        with (folder / end.file_name).open("rb") as stream:
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
