"""Whole jobs without torch: real processes, the real watchdog, no stand-ins."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_disk import SmallDisk

from watchdog.blackbox.reading import read_blackbox
from watchdog.exit_status import STALLED
from watchdog.node.duties import sentinel_pid
from watchdog.sentinel.sentinel import LOCK
from watchdog.serialization import evidence_from_json

WAIT = "wait_in_barrier"


@pytest.fixture
def full_disk(tmp_path):
    """A file system with room for a few small files only."""
    disk = SmallDisk(tmp_path / "full", size="4k", num_files=40)
    if not disk.is_there:
        pytest.skip("may not mount a tmpfs here")
    disk.fill()
    yield disk.folder
    disk.remove()


@pytest.mark.slow
def test_ranks_that_cannot_speak_are_in_the_report_and_all_ranks_end(job):
    run = job(
        WAIT, "hold_the_gil", WAIT, WAIT, "never_arrives",
        MILES_WATCHDOG_ABORT_AFTER="7", MILES_WATCHDOG_ON_STALL="echo looked at",
    )  # fmt: skip
    run.ranks[2].send_signal(signal.SIGSTOP)
    run.ranks[3].kill()

    report = json.loads(run.wait_for(run.report).read_text())
    folder = run.report().parent
    statuses = [rank.wait(40) for rank in run.ranks]

    evidence = evidence_from_json((folder / "evidence.json").read_text())
    by_rank = {process.rank: process for process in evidence.processes}
    assert sorted(by_rank) == [0, 1, 2, 3, 4]
    assert [t.owns_gil for t in by_rank[1].stacks[-1].threads if t.name == "MainThread"] == [True]
    assert by_rank[2].status == "stopped"
    assert by_rank[3].status == "dead"
    assert len(by_rank[0].stacks) >= 2
    assert len(by_rank[1].activity) >= 2
    assert by_rank[4].position.section == ""
    assert evidence.stall.noticed_by == (0,)
    assert report["state"] in ("hung", "crashed")
    assert statuses == [STALLED, -9, -9, -9, STALLED]
    said = run.said(0)
    assert str(folder / "report.md") in said
    assert "ended rank 1, 2 by SIGKILL" in said
    assert json.loads(run.report().read_text())["aborted"]
    log = (folder / "on_stall.log").read_text()
    assert log.strip() == f"looked at {folder / 'report.md'}"
    for path in run.folder.rglob("*"):
        if path.is_file():
            assert "abc-def-ghi" not in path.read_text(errors="replace")
    assert all(path.stat().st_mode & 0o77 == 0 for path in (folder, *folder.rglob("*")))


@pytest.mark.slow
def test_one_rank_writes_the_report_and_the_others_end_with_it(job):
    run = job(WAIT, WAIT, WAIT, MILES_WATCHDOG_ABORT_AFTER="5")

    statuses = [rank.wait(60) for rank in run.ranks]

    assert statuses == [STALLED] * 3
    evidence = evidence_from_json((run.report().parent / "evidence.json").read_text())
    assert evidence.stall.noticed_by == (0, 1, 2)
    assert [len(process.stacks) >= 2 for process in evidence.processes] == [True] * 3
    assert sum("report.md" in run.said(rank) for rank in range(3)) == 1
    for rank in range(3):
        assert f"ending rank {rank} with status {STALLED}: " in run.said(rank)
    # Who wrote no report says nothing but that: a driver hears hundreds of them.
    followers = [run.said(rank) for rank in range(3) if "report.md" not in run.said(rank)]
    lines = [line for said in followers for line in said.splitlines()]
    assert [line for line in lines if not re.search("ending rank|dog] on; ", line)] == []


@pytest.mark.slow
def test_of_all_ranks_that_go_on_after_all_one_says_so(job):
    run = job("finish", "finish", "finish")
    run.wait_for(lambda: len(list(run.incidents.glob("*/raw/rank-*.json"))) == 3 and run.report())

    for rank in run.ranks:
        rank.stdin.write("x")
        rank.stdin.flush()

    assert [rank.wait(40) for rank in run.ranks] == [0, 0, 0]
    said = "".join(run.said(rank) for rank in range(3))
    assert said.count("ended after all") == 1
    assert len((run.report().parent / "recovered.jsonl").read_text().splitlines()) == 3


@pytest.mark.slow
def test_a_rank_that_goes_on_after_all_is_not_ended(job):
    run = job("finish", MILES_WATCHDOG_ABORT_AFTER="600")
    run.wait_for(run.report)

    run.ranks[0].stdin.write("x")
    run.ranks[0].stdin.flush()

    assert run.ranks[0].wait(40) == 0
    assert "with status" not in run.said(0)


@pytest.mark.slow
def test_a_folder_that_nobody_can_write_costs_the_place_and_not_the_report(job, tmp_path):
    (tmp_path / "file").write_text("")
    run = job(WAIT, "finish", MILES_WATCHDOG_DIR=str(tmp_path / "file" / "runs"))

    found = run.wait_for(lambda: list((tmp_path / "tmp").rglob("report.json")))

    run.wait_for(lambda: "report.md" in run.said(0) + run.said(1))
    said = run.said(0) + run.said(1)
    assert "refused: Not a directory" in said
    assert str(found[0].with_name("report.md")) in said
    run.ranks[1].stdin.write("x")
    run.ranks[1].stdin.flush()
    assert run.ranks[1].wait(40) == 0


@pytest.mark.slow
def test_a_full_disk_costs_the_place_and_not_the_report(job, full_disk, tmp_path):
    run = job(WAIT, WAIT, MILES_WATCHDOG_DIR=str(full_disk / "runs"))

    found = run.wait_for(lambda: list((tmp_path / "tmp").rglob("report.json")))

    run.wait_for(lambda: "report.md" in run.said(0) + run.said(1))
    said = run.said(0) + run.said(1)
    assert "No space left" in said
    assert str(found[0].with_name("report.md")) in said


@pytest.mark.slow
def test_time_in_which_a_job_and_its_sentinel_were_stopped_raises_no_alarm(job):
    run = job("finish", MILES_WATCHDOG_STALL_AFTER="6")
    rank = run.ranks[0]
    box = run.wait_for(lambda: next(iter(run.folder.glob("runs/*/ranks/0.blackbox")), None))
    local = box.resolve().parent
    sentinel = run.wait_for(lambda: sentinel_pid(local))

    for pid in (rank.pid, sentinel):
        os.kill(pid, signal.SIGSTOP)
    entered_s = read_blackbox(local / "0.blackbox").section_began_s
    run.wait_for(lambda: time.monotonic() > entered_s + 12)
    # The sentinel is back first, and sees a silent rank in a section that is old.
    os.kill(sentinel, signal.SIGCONT)
    for _ in range(2):
        seen_s = (local / LOCK).stat().st_mtime
        run.wait_for(lambda before_s=seen_s: (local / LOCK).stat().st_mtime > before_s)
    rank.send_signal(signal.SIGCONT)
    rank.stdin.write("x")
    rank.stdin.flush()

    assert rank.wait(40) == 0
    run.wait_for(lambda: not local.exists())
    assert not run.incidents.exists()
    assert "stalled" not in run.said(0)


DRIVER = """
import argparse, sys
from watchdog.recording import active_flags
args = argparse.Namespace(disable_weights_backuper=True)
active_flags.record(args, "validate", {"disable_weights_backuper": False})
print("ready", flush=True)
sys.stdin.read()
"""


def is_watched_by_sentinel(run) -> bool:
    """Whether the job's ranks have a sentinel, wherever their boxes lie."""
    locks = Path("/dev/shm").glob(f"miles-watchdog-{os.getuid()}-*/{run.run}.*/{LOCK}")
    return any(sentinel_pid(lock.parent) for lock in locks)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["runs", "file/runs"], ids=["run folder", "substitute"])
def test_of_ranks_that_cannot_speak_the_report_has_the_arguments_of_their_driver(
    job, tmp_path, place
):
    (tmp_path / "file").write_text("")
    run = job(WAIT, MILES_WATCHDOG_DIR=str(tmp_path / place), MILES_WATCHDOG_STALL_AFTER="12")
    run.wait_for(lambda: is_watched_by_sentinel(run))
    run.ranks[0].send_signal(signal.SIGSTOP)
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        env={**os.environ, **run.environ}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with driver:
        assert driver.stdout.readline() == b"ready\n"

        found = run.wait_for(lambda: list(tmp_path.rglob("report.json")))
        driver.stdin.close()

    evidence = evidence_from_json(found[0].with_name("evidence.json").read_text())
    assert [(flag.name, flag.value) for flag in evidence.flags] == [
        ("disable_weights_backuper", True)
    ]
