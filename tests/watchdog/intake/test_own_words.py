"""A log into which the watchdog of the run wrote is believed as far as it saw more than a log."""

from __future__ import annotations

import pytest

from tests.watchdog.intake.test_own_folders import one_look
from watchdog.diagnosis import diagnose
from watchdog.evidence import Evidence
from watchdog.exit_status import STALLED
from watchdog.findings import Verdict
from watchdog.reports import summary
from watchdog.reports.incident_info import IncidentInfo

REPORT = "/shared/runs/1-2-3/incidents/weight_sync-0003"
BLAMED = f"""\
E1201 13:21:55.468000 4262 torch/distributed/elastic/multiprocessing/api.py:1002] failed \
(exitcode: {STALLED}) local_rank: 2 (pid: 1003) of binary: /venv/bin/python3
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
hang.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-12-01_13:21:55
  host      : localhost
  rank      : 2 (local_rank: 2)
  exitcode  : {STALLED} (pid: 1003)
  error_file: <N/A>
============================================================
"""
ENDINGS = "".join(f"[miles-watchdog] ending rank {n} with status {STALLED}: X\n" for n in (2, 1, 0))


def told(prefix: str = "") -> str:
    """The summary of a hang in which ranks 0 and 2 wait for rank 1."""
    evidence = one_look("vm", 1001)
    info = IncidentInfo("weight_sync-0003", "1-2-3", REPORT, 100.0)
    text = summary.render(evidence, diagnose(evidence), info)
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def verdict(evidence: Evidence) -> Verdict:
    return diagnose(evidence).verdict


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "(TrainRayActor pid=1001, ip=10.0.0.2) "])
def test_the_log_of_a_run_that_the_watchdog_ended_tells_what_the_watchdog_saw(read_files, prefix):
    evidence = read_files({"job.log": f"step 0 done\n{told(prefix)}{ENDINGS}{BLAMED}"})

    found = verdict(evidence)

    assert found.state == "hung"
    assert [(c.process, c.rank, c.pid, c.host) for c in found.culprits] == [
        ("rank 1", 1, 1002, "vm")
    ]
    assert found.culprits[0].where.startswith("read_all (")
    assert "The watchdog of the run reported: rank 1 holds up 2 of 3 ranks" in found.reason
    assert f"its report lies in {REPORT}/report.md" in found.reason
    assert found.unaccounted == ()
    assert REPORT in diagnose(evidence).collect_next[0]


def test_the_watchdogs_own_exit_status_is_no_first_failure(read_files):
    found = verdict(read_files({"job.log": BLAMED}))

    assert found.state != "crashed"
    assert found.culprits == ()


def test_an_error_before_the_summary_outranks_it(read_files):
    error = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/job/hang.py", line 9, in read_all\n'
        "[rank1]: ValueError: shard 7 is truncated\n"
    )

    found = verdict(read_files({"job.log": f"{error}{told()}{ENDINGS}{BLAMED}"}))

    assert found.state == "crashed"
    assert "ValueError" in found.reason


def test_a_stall_that_ended_after_all_is_not_told_as_a_hang(read_files):
    over = "[miles-watchdog] weight_sync 3 ended after all in rank 0, after 25.2 s\n"

    assert verdict(read_files({"job.log": f"{told()}{over}step 3 done\n"})).state != "hung"


def test_stacks_at_hand_are_judged_by_themselves(read_files):
    dump = 'Process 7: python train.py\n\nThread 7 (active): "MainThread"\n    step (train.py:3)\n'

    found = verdict(read_files({"job.log": told(), "dump.txt": dump}))

    assert "The watchdog of the run reported" not in found.reason


def test_nobody_is_called_by_a_question_mark(read_files):
    failed = "E api.py:1002] failed (exitcode: 1) local_rank: 2 (pid: 5643) of binary: /python3\n"

    found = verdict(read_files({"job.log": failed}))

    assert [c.process for c in found.culprits] == ["pid 5643"]


def test_torchruns_summary_says_which_rank_the_failed_process_was(read_files):
    blamed = BLAMED.replace(f"exitcode: {STALLED}", "exitcode: 1")
    blamed = blamed.replace(f": {STALLED} (pid", ": 1 (pid")

    assert [c.process for c in verdict(read_files({"job.log": blamed})).culprits] == ["rank 2"]
