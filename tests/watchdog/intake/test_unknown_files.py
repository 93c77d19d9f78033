"""Files that have nothing to do with the incident, among those that have."""

from __future__ import annotations

from watchdog.diagnosis import diagnose
from watchdog.reports import REPORTS

DUMP = """Process 11: python train.py
Thread 11 (idle): "MainThread"
    load (train.py:4)
"""
TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 3, in f
    g()
RuntimeError: bad shard
"""


def test_a_file_of_which_nothing_is_known_is_named_and_not_quoted(read_files):
    evidence = read_files({"rank1.txt": DUMP, "users.txt": "root:x:0:0::/root:/bin/bash\n"})

    assert any(note == "nothing was recognised in users.txt" for note in evidence.notes)
    assert [event.file for event in evidence.log_events] == []


def test_the_last_line_of_a_log_of_which_the_time_is_known_is_kept(read_files):
    log = "2026-08-02 04:05:06 something of this job\n"

    evidence = read_files({"rank1.txt": DUMP, "node.log": log})

    assert [event.kind for event in evidence.log_events] == ["last_line"]


def test_an_exception_that_no_cause_quotes_stands_in_the_report_for_people(read_files):
    evidence = read_files({"rank1.txt": DUMP, "some.log": TRACEBACK})

    said = REPORTS["terminal"].render(evidence, diagnose(evidence), None)

    assert "logged  RuntimeError: bad shard (some.log:" in said
