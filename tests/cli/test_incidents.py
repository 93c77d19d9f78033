"""`incidents`, and the folders it and `report` read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from report_cases import Case, native_lora

from watchdog.cli import group
from watchdog.cli.incident_folder import load_incident, runs_below
from watchdog.cli.incidents import age
from watchdog.errors import UnreadableEvidenceError, UnusableInputError
from watchdog.reports import REPORTS, IncidentInfo
from watchdog.serialization import evidence_to_json


def write_incident(run: Path, name: str, case: Case, started_at_s: float = 1.0) -> Path:
    folder = run / "incidents" / name
    folder.mkdir(parents=True)
    info = IncidentInfo(name, run.name, str(folder), started_at_s)
    for form in ("json", "markdown"):
        text = REPORTS[form].render(case.evidence, case.diagnosis, info)
        (folder / REPORTS[form].FILE_NAME).write_text(text)
    (folder / "evidence.json").write_text(evidence_to_json(case.evidence))
    return folder


def test_each_incident_is_told_with_headline_cause_and_folder(tmp_path):
    folder = write_incident(tmp_path / "run-1", "weight_sync-2", native_lora())

    output = CliRunner().invoke(group, ["incidents", str(tmp_path)]).output

    assert (
        "HUNG: rank 2 holds up 3 of 4 ranks in weight_sync; missing-backup-lora-colocate, confirmed"
        in output
    )
    assert str(folder) in output


def test_a_run_without_incidents_is_told_with_its_number_of_syncs(tmp_path):
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-1" / "syncs.jsonl").write_text("{}\n{}\n")

    output = CliRunner().invoke(group, ["incidents", str(tmp_path)]).output

    assert output == "run-1: no incident, 2 syncs ended\n"


def test_a_runs_own_folder_does_as_well(tmp_path):
    write_incident(tmp_path / "run-1", "a", native_lora())

    assert [run.folder.name for run in runs_below(tmp_path / "run-1")] == ["run-1"]


def test_the_last_incident_comes_first(tmp_path):
    write_incident(tmp_path / "run", "early", native_lora(), 10.0)
    write_incident(tmp_path / "run", "late", native_lora(), 20.0)

    (run,) = runs_below(tmp_path)

    assert [incident.folder.name for incident in run.incidents] == ["late", "early"]


def test_the_run_that_changed_last_comes_first(tmp_path):
    for name, changed_s in (("a", 100), ("b", 300), ("c", 200)):
        (tmp_path / name / "ranks").mkdir(parents=True)
        os.utime(tmp_path / name, (changed_s, changed_s))

    assert [run.folder.name for run in runs_below(tmp_path)] == ["b", "c", "a"]


@pytest.mark.parametrize(
    "report",
    ["", "{", "[]", "null", '{"causes": 3}', '{"causes": [3]}', '{"incident": 4}', "[" * 99999],
)
def test_a_report_that_nobody_can_read_is_listed_as_such(tmp_path, report):
    folder = tmp_path / "run" / "incidents" / "x"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(report)

    result = CliRunner().invoke(group, ["incidents", str(tmp_path)])

    assert result.exit_code == 0
    assert "no readable report.json" in result.output


def test_a_name_with_escapes_cannot_reach_the_terminal(tmp_path):
    write_incident(tmp_path / "run\x1b[2J", "x", native_lora())

    assert "\x1b" not in CliRunner().invoke(group, ["incidents", str(tmp_path)]).output


def test_the_json_names_run_incident_state_and_cause(tmp_path):
    write_incident(tmp_path / "run-1", "weight_sync-2", native_lora())

    (run,) = json.loads(CliRunner().invoke(group, ["incidents", str(tmp_path), "--json"]).output)

    (incident,) = run["incidents"]
    assert (run["run"], incident["id"], incident["state"], incident["cause"]) == (
        "run-1", "weight_sync-2", "hung", "missing_backup confirmed",
    )  # fmt: skip
    assert incident["rule"] == "missing-backup-lora-colocate"


@pytest.mark.parametrize("by_file", [False, True])
def test_an_incident_is_loaded_by_folder_or_by_file(tmp_path, by_file):
    case = native_lora()
    folder = write_incident(tmp_path / "run-1", "weight_sync-2", case, 7.0)

    evidence, info = load_incident(folder / "evidence.json" if by_file else folder)

    assert evidence == case.evidence
    assert (info.id, info.run, info.started_at_s) == ("weight_sync-2", "run-1", 7.0)


def test_a_folder_without_evidence_is_refused_by_name(tmp_path):
    with pytest.raises(UnusableInputError, match=r"evidence\.json: No such file"):
        load_incident(tmp_path)


def test_a_file_that_is_no_evidence_is_refused(tmp_path):
    (tmp_path / "evidence.json").write_text('{"a": 1}')

    with pytest.raises(UnreadableEvidenceError):
        load_incident(tmp_path)


@pytest.mark.parametrize(
    ("age_s", "text"),
    [(-5, "0 s"), (12, "12 s"), (300, "5 min"), (10_800, "3 h"), (200_000, "2 d")],
)
def test_an_age_has_one_unit(age_s, text):
    assert age(age_s) == text


def test_what_a_demo_left_one_level_deeper_is_listed(tmp_path):
    write_incident(tmp_path / "demo-native-lora" / "run-1", "weight_sync-2", native_lora())

    text = CliRunner().invoke(group, ["incidents", str(tmp_path)]).output

    assert "weight_sync-2" in text


def test_a_folder_that_is_not_there_comes_with_advice_on_folders(tmp_path):
    result = CliRunner().invoke(group, ["incidents", str(tmp_path / "nope")])

    assert result.exit_code == 2
    assert "no such folder" in result.stderr
    assert "py-spy" not in result.stderr
