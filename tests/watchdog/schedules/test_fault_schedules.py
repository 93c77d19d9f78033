"""Parts of the watchdog die at random moments of an incident; the report comes all the same.

A schedule is a job of two or three ranks that hang, real processes without torch, and one to
three faults, all drawn from a seed. Many run at once, since most of their time is waiting.
`pytest tests/watchdog/schedules -k seed-123` runs one seed alone.
"""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _faults import Disk, Schedule, schedule
from _scheduled_job import Job, wait_for

NUM_IN_CI, NUM_IN_ALL, NUM_A_BATCH = 300, 5000, 30
AT_ONCE = int(os.environ.get("SCHEDULES_AT_ONCE", "8"))
REPORT_WITHIN_S = 90.0
VERDICT = re.compile(r"^\[miles-watchdog\] (HUNG|CRASHED): .*rank", re.M)
# The threads without which a rank does not report itself.
REPORTING = ("monitor", "incident")

BATCHES = [
    pytest.param(
        range(first, first + NUM_A_BATCH),
        id=f"seeds-{first}-to-{first + NUM_A_BATCH - 1}",
        marks=pytest.mark.slow if first < NUM_IN_CI else pytest.mark.exhaustive,
    )
    for first in range(0, NUM_IN_ALL, NUM_A_BATCH)
]


def test_the_report_comes_whatever_dies(zygote, seeds, tmp_path):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(partial(outcome, zygote, tmp_path), map(schedule, seeds)))

    failed = [text for text in outcomes if text]
    assert not failed, "\n\n".join(failed)


def outcome(zygote, tmp_path, drawn: Schedule) -> str:
    """What went otherwise than claimed, "" for nothing."""
    folder = tmp_path / str(drawn.seed)
    (folder / "tmp").mkdir(parents=True)
    disk = Disk(folder / "runs", is_own=drawn.needs_disk)
    try:
        run(zygote, folder, disk, drawn)
    except AssertionError as error:
        said = (folder / "stderr").read_text(errors="replace")[-3000:]
        return f"{drawn}\n{error}\n{said}"
    finally:
        disk.remove()
    return ""


def run(zygote, folder: Path, disk: Disk, drawn: Schedule) -> None:
    temporary = disk.folder if drawn.has_no_other_disk else folder / "tmp"
    job = zygote.start(
        folder, drawn.ways, MILES_WATCHDOG_DIR=str(disk.folder), TMPDIR=str(temporary)
    )
    try:
        for fault in drawn.faults:
            fault.strike(job, disk)
        if somebody_can_tell(job, drawn):
            is_told = partial(has_told, job, drawn)
            wait_for("a report", is_told, REPORT_WITHIN_S)
        check_reports(job, drawn)
        assert not job.ended_unexpectedly(), "a rank ended that nobody had killed"
    finally:
        job.end()
    assert "Traceback" not in job.said()
    assert "the watchdog itself failed" not in job.said()
    assert not job.left_in_memory()
    assert not job.left_among_temporary_files()


def has_told(job: Job, drawn: Schedule) -> bool:
    """Whether there is a report; where no disk takes one, the verdict on standard error."""
    return bool(job.reports()) or (drawn.has_no_other_disk and VERDICT.search(job.said()))


def somebody_can_tell(job: Job, drawn: Schedule) -> bool:
    """Whether a rank inside the sync is left, and a rank or a sentinel to speak for it."""
    ranks = range(len(drawn.ways))
    inside = [rank for rank in ranks if drawn.ways[rank] != "never_arrives" and job.state(rank)]
    able = [rank for rank in ranks if job.state(rank) not in ("", "T") and not drawn.mutes(rank)]
    speaks = [rank for rank in inside if rank in able and not drawn.ends(rank, REPORTING)]
    # A sentinel that was killed is replaced by any rank.
    keeps = [rank for rank in able if not drawn.ends(rank, ("node",))]
    return bool(inside) and bool(speaks or keeps or job.has_running_sentinel())


def check_reports(job: Job, drawn: Schedule) -> None:
    for path in job.reports():
        check_report(json.loads(path.read_text()), drawn)
    # What was moved away with its folder is written again.
    is_lost = any(fault.name.startswith("incidents") for fault in drawn.faults)
    assert len(job.reports()) <= 1 or is_lost, job.reports()


def check_report(report: dict[str, Any], drawn: Schedule) -> None:
    """No rank is missing; of each that could not speak, it is said."""
    everybody = set(range(len(drawn.ways)))
    named = {rank for group in report["groups"] for rank in group["ranks"]}
    assert named | set(report["unaccounted"]) == everybody, report["groups"]
    # Who takes the GIL for good between two samples is seen to move.
    moves = any(fault.name.startswith("hold the GIL") for fault in drawn.faults)
    assert report["state"] in ("hung", "crashed", *(["slow"] if moves else [])), report["headline"]
    ranks = {one["rank"]: one for one in report["processes"] if one["role"] == "trainer"}
    assert set(ranks) == everybody, ranks
    for rank, one in ranks.items():
        spoke = one["identified_by"] == "the watchdog in the process itself"
        assert spoke or "because" in one["identified_by"], one
        if fate := drawn.early_fate(rank):
            assert (one["status"], spoke) == (fate, False), one
