"""What the driver of a run says at its very end."""

import json
import subprocess
import sys

import pytest

from watchdog.run import substitute
from watchdog.run.last_word import lines

ENDS = """
import os, sys
from pathlib import Path
from watchdog.run.last_word import promise
promise(Path(sys.argv[1]))
if os.fork() == 0:
    sys.exit()
os.wait()
"""


@pytest.fixture
def incident(tmp_path):
    def write(name, text):
        folder = tmp_path / "incidents" / name
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(text)
        return folder

    return write


def test_a_run_without_incident_has_no_last_word(tmp_path):
    assert lines(tmp_path) == []


def test_the_last_word_is_said_once_by_the_process_that_promised_it(tmp_path, incident):
    folder = incident("weight_sync-0001", json.dumps({"state": "hung", "reason": "rank 1 reads."}))

    done = subprocess.run(
        [sys.executable, "-c", ENDS, tmp_path], capture_output=True, text=True, timeout=60,
        check=True,
    )  # fmt: skip

    assert done.stderr.splitlines() == [
        "[miles-watchdog] this run stalled in weight_sync-0001: hung: rank 1 reads. "
        f"Report: {folder / 'report.md'}"
    ]


@pytest.mark.parametrize(
    ("flag", "words"),
    [("recovered", "and went on"), ("aborted", "and was ended by the watchdog")],
)
def test_the_last_word_on_a_stall_says_what_became_of_it(tmp_path, incident, flag, words):
    told = {"state": "hung", "reason": "rank 1 reads.", flag: True}
    folder = incident("weight_sync-0001", json.dumps(told))

    assert lines(tmp_path) == [
        f"this run stalled in weight_sync-0001 {words}: hung: rank 1 reads. "
        f"Report: {folder / 'report.md'}"
    ]


@pytest.mark.parametrize("text", ["{", "[]", "null"])
def test_a_report_that_cannot_be_read_is_named_all_the_same(tmp_path, incident, text):
    folder = incident("weight_sync-0001", text)

    assert lines(tmp_path) == [
        f"this run stalled in weight_sync-0001. Report: {folder / 'report.md'}"
    ]


def test_many_incidents_are_counted(tmp_path, incident):
    for number in range(5):
        incident(f"weight_sync-{number:04d}", "{}")

    assert len(lines(tmp_path)) == 4
    assert lines(tmp_path)[-1] == f"2 more in {tmp_path / 'incidents'}"


def test_a_report_in_the_substitute_is_named_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(substitute, "substitute_root", lambda: tmp_path / "instead")
    folder = tmp_path / "instead" / "a-run" / "incidents" / "weight_sync-0001"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps({"state": "hung", "reason": "rank 1 reads."}))

    (said,) = lines(tmp_path / "a-run")

    assert str(folder / "report.md") in said
