"""How a stall came to its end is told by every report of it."""

from __future__ import annotations

import json
import time

import pytest

from watchdog.cli.incident_folder import load_incident, runs_below
from watchdog.diagnosis import diagnose
from watchdog.evidence import Evidence
from watchdog.incident import abort
from watchdog.reports import REPORTS, IncidentInfo
from watchdog.reports.summary import PREFIX
from watchdog.run.stall_ends import ABORTED, RECOVERED, note, took_s
from watchdog.serialization import evidence_to_json


@pytest.fixture
def incident(tmp_path):
    folder = tmp_path / "run" / "incidents" / "weight_sync-0003"
    folder.mkdir(parents=True)
    evidence = Evidence("watchdog")
    (folder / "evidence.json").write_text(evidence_to_json(evidence))
    info = IncidentInfo(folder.name, "run", str(folder), 1.0)
    for name, file in (("json", "report.json"), ("markdown", "report.md")):
        (folder / file).write_text(REPORTS[name].render(evidence, diagnose(evidence), info))
    return folder


def test_the_reports_that_lie_there_say_how_long_it_took(incident):
    note(incident, RECOVERED, 12.4)
    note(incident, RECOVERED, 9.0)  # another rank's

    report = json.loads((incident / "report.json").read_text())
    lines = (incident / "report.md").read_text().splitlines()
    assert report["headline"].endswith("; ended after all, after 12 s")
    assert report["headline"].count("ended after all") == 1
    assert report["incident"]["ended_after_s"] == 12.4
    assert report["recovered"] is True
    assert lines[0].startswith("# ")
    assert lines[2].startswith("**Ended after all**, after 12 s")
    assert sum(line.startswith("**Ended after all**") for line in lines) == 1


def test_what_is_read_back_later_says_it_too(incident, tmp_path):
    (incident / "recovered.jsonl").write_text('{"duration_s": 12.4}\nnot json\n{"duration_s": 3}\n')

    evidence, info = load_incident(incident)
    (run,) = runs_below(tmp_path)

    assert info.ended_after_s == 12.4
    assert "ended after all, after 12 s" in run.incidents[0].headline
    assert "**Ended after all**" in REPORTS["markdown"].render(evidence, diagnose(evidence), info)
    for name in ("json", "terminal", "summary", "chat"):
        words = REPORTS[name].render(evidence, diagnose(evidence), info).split()
        assert "ended after all, after 12 s" in " ".join(w for w in words if w != PREFIX)
    assert json.loads(REPORTS["json"].render(evidence, diagnose(evidence), info))["recovered"]


def test_that_the_watchdog_ended_the_run_is_told_by_all_of_them(incident, tmp_path):
    abort.note(incident, 3, time.monotonic() - 60.2)

    report = json.loads((incident / "report.json").read_text())
    evidence, info = load_incident(incident)
    (run,) = runs_below(tmp_path)
    words = "the watchdog ended the run 60 s after the stall"
    assert (report["aborted"], report["recovered"]) == (True, False)
    assert report["headline"].endswith(words)
    assert run.incidents[0].headline.endswith(words)
    assert "\n**The watchdog ended the run** (`MILES" in (incident / "report.md").read_text()
    assert (
        words in json.loads(REPORTS["json"].render(evidence, diagnose(evidence), info))["headline"]
    )
    assert took_s(incident, ABORTED) == pytest.approx(60.2)


def test_a_stall_that_did_not_end_is_told_as_it_was(incident, tmp_path):
    (incident / "failed.jsonl").write_text('{"duration_s": 12.4, "raised": "RuntimeError"}\n')

    (run,) = runs_below(tmp_path)

    assert took_s(incident, RECOVERED) is None
    assert json.loads((incident / "report.json").read_text())["recovered"] is False
    assert "ended after all" not in run.incidents[0].headline


@pytest.mark.parametrize("text", ["", "[", "[1]", "null", "[" * 100_000])
def test_a_report_that_cannot_be_read_is_left_alone(incident, text):
    (incident / "report.json").write_text(text)

    note(incident, RECOVERED, 12.4)

    assert (incident / "report.json").read_text() == text
    assert not list(incident.glob(".report*"))


def test_nothing_is_made_where_no_report_is(tmp_path):
    note(tmp_path, RECOVERED, 12.4)

    assert list(tmp_path.iterdir()) == []
