"""`report`: an incident told again, whatever its folder holds besides the evidence."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner
from report_cases import hostile, native_lora, unknown

from watchdog.cli import group
from watchdog.reports import REPORTS
from watchdog.serialization import evidence_to_json


@pytest.fixture
def incident(tmp_path):
    folder = tmp_path / "run-1" / "incidents" / "weight_sync-2"
    folder.mkdir(parents=True)
    (folder / "evidence.json").write_text(evidence_to_json(native_lora().evidence))
    return folder


def run(*arguments: object):
    return CliRunner().invoke(group, ["report", *map(str, arguments)])


@pytest.mark.parametrize("name", REPORTS)
def test_every_format_is_offered(incident, name):
    result = run(incident, "--format", name)

    assert result.exit_code == 0, result.output
    assert "rank 2" in result.output


def test_the_diagnosis_is_made_anew_from_the_evidence(incident):
    report = json.loads(run(incident, "--format", "json").output)

    assert report["state"] == "hung"
    assert [culprit["rank"] for culprit in report["culprits"]] == [2]
    assert report["causes"][0]["class"] == "missing_backup"


def test_the_difference_of_an_incident_to_itself_is_none(incident):
    assert run(incident, "--diff", incident).output == "nothing that a report shows differs\n"


def test_the_difference_to_another_names_what_differs(incident, tmp_path):
    other = tmp_path / "evidence.json"
    other.write_text(evidence_to_json(unknown().evidence))

    output = run(incident, "--diff", other).output

    assert "flag colocate: True → (none)" in output
    assert "world size: 4 → 32" in output


def test_hostile_evidence_reaches_the_terminal_escaped(tmp_path):
    (tmp_path / "evidence.json").write_text(evidence_to_json(hostile().evidence))

    result = run(tmp_path)

    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output


def test_a_path_that_does_not_exist_is_a_usage_error(tmp_path):
    assert run(tmp_path / "nothing").exit_code == 2


def test_a_report_in_place_of_the_evidence_is_refused_in_plain_words(incident):
    report = incident / "report.json"
    report.write_text(run(incident, "--format", "json").stdout)

    result = run(report)

    assert result.exit_code == 2
    assert "this is a report" in result.stderr
    assert "extra fields" not in result.stderr
    assert "incident's folder" in result.stderr


def test_a_format_for_a_comparison_is_refused(incident):
    result = run(incident, "--diff", incident, "--format", "json")

    assert result.exit_code == 2
    assert "--diff has one format" in result.stderr


def test_a_device_or_a_pipe_is_refused_at_once(tmp_path):
    pipe = tmp_path / "evidence.json"
    os.mkfifo(pipe)

    for path in ("/dev/zero", pipe, tmp_path):
        result = run(path)

        assert result.exit_code == 2, result.output
        assert "not a regular file" in result.output


def test_the_second_incident_is_guarded_like_the_first(incident):
    result = run(incident, "--diff", "/dev/zero")

    assert result.exit_code == 2
    assert "not a regular file" in result.output
