"""What holds whatever goes wrong: claims about a job after its faults."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from _faults import Schedule
from _scheduled_job import Job, Zygote, wait_for
from small_disk import SmallDisk

_AT_ONCE = int(os.environ.get("SCHEDULES_AT_ONCE", "8"))
_REPORT_WITHIN_S = 120.0
_VERDICT = re.compile(r"^\[miles-watchdog\] (HUNG|CRASHED|SLOW): .*rank", re.M)
# The threads without which a rank does not report itself.
_REPORTING = ("monitor", "incident")


def batches(num_in_ci: int, num_in_all: int, num_a_batch: int) -> list[Any]:
    """Seeds in batches, as parameters of a test; `-k seed-123` runs one seed alone."""
    return [
        pytest.param(
            range(first, first + num_a_batch),
            id=f"seeds-{first}-to-{first + num_a_batch - 1}",
            marks=pytest.mark.slow if first < num_in_ci else pytest.mark.exhaustive,
        )
        for first in range(0, num_in_all, num_a_batch)
    ]


def outcomes(zygote: Zygote, folder: Path, schedules: Iterable[Schedule]) -> list[str]:
    """What went otherwise than claimed, a text a schedule; many run at once, for they wait."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda drawn: outcome(zygote, folder, drawn), schedules))
    return [text for text in found if text]


def outcome(zygote: Zygote, tmp_path: Path, drawn: Schedule) -> str:
    """What went otherwise than claimed, "" for nothing."""
    folder = tmp_path / str(drawn.seed)
    (folder / "tmp").mkdir(parents=True)
    disk = SmallDisk(folder / "runs")
    try:
        _run(zygote, folder, disk, drawn)
    except AssertionError as error:
        said = folder / "stderr"
        text = said.read_text(errors="replace")[-3000:] if said.exists() else "nothing"
        return f"{drawn}\n{error}\nstandard error: {text}"
    finally:
        disk.remove()
    return ""


def _run(zygote: Zygote, folder: Path, disk: SmallDisk, drawn: Schedule) -> None:
    job = zygote.start(
        folder, drawn.ways, drawn.nodes, MILES_WATCHDOG_DIR=str(disk.folder),
        MILES_WATCHDOG_NATIVE=drawn.native,
        TMPDIR=str(disk.folder if drawn.has_no_other_disk else folder / "tmp"),
    )  # fmt: skip
    try:
        for fault in drawn.faults:
            fault.strike(job, disk)
        for node in sorted(set(drawn.nodes)):
            ranks = [rank for rank, its in enumerate(drawn.nodes) if its == node]
            if _can_tell(job, drawn, ranks):
                _wait_for_report(job, drawn, ranks[0])
            _check_reports(job, drawn, ranks[0])
        assert not job.ended_unexpectedly(), "a rank ended that nobody had killed"
    finally:
        job.end()
    assert "Traceback" not in job.said()
    assert "the watchdog itself failed" not in job.said()
    # Boxes that a full disk refuses stay until it takes them.
    disk.recover()
    assert not job.left_in_memory()
    assert not job.left_among_temporary_files()


def _can_tell(job: Job, drawn: Schedule, ranks: list[int]) -> bool:
    """Whether a rank of the node is left inside the sync, and a rank or a sentinel to speak."""
    inside = [rank for rank in ranks if drawn.ways[rank] != "never_arrives" and job.state(rank)]
    able = [rank for rank in ranks if job.state(rank) not in ("", "T") and not drawn.mutes(rank)]
    speaks = [rank for rank in inside if rank in able and not drawn.ends(rank, _REPORTING)]
    # A sentinel that was killed is replaced by any rank.
    keeps = [rank for rank in able if not drawn.ends(rank, ("node",))]
    return bool(inside) and bool(speaks or keeps or job.has_running_sentinel(ranks[0]))


def _wait_for_report(job: Job, drawn: Schedule, rank: int) -> None:
    """On disk; where no disk takes one, the verdict on standard error."""

    def is_told() -> bool:
        return bool(job.reports(rank)) or (
            drawn.has_no_other_disk and _VERDICT.search(job.said()) is not None
        )

    wait_for(f"a report for rank {rank}", is_told, _REPORT_WITHIN_S)


def _check_reports(job: Job, drawn: Schedule, rank: int) -> None:
    reports = job.reports(rank)
    for path in reports:
        _check_report(json.loads(path.read_text()), drawn)
    # What was moved away with its folder is written again.
    is_lost = any(fault.name.startswith("incidents") for fault in drawn.faults)
    assert len(reports) <= 1 or is_lost, reports


def _check_report(report: dict[str, Any], drawn: Schedule) -> None:
    """No rank is missing; of each that could not speak, it is said."""
    everybody = set(range(len(drawn.ways)))
    named = {rank for group in report["groups"] for rank in group["ranks"]}
    assert named | set(report["unaccounted"]) == everybody, report["groups"]
    # Who takes the GIL for good between two samples is seen to move.
    moves = any(fault.name.startswith("hold the GIL") for fault in drawn.faults)
    assert report["state"] in ("hung", "crashed", *(["slow"] if moves else [])), report["headline"]
    ranks = {one["rank"]: one for one in report["processes"] if one["role"] == "trainer"}
    assert set(ranks) == everybody, ranks
    told = {rank for gap in report["gaps"] for rank in _ranks_in(gap["process"])}
    for rank, one in ranks.items():
        spoke = one["identified_by"].startswith("the watchdog in the process itself")
        assert spoke or "because" in one["identified_by"] or rank in told, one
        if fate := drawn.early_fate(rank):
            # Of a node that does not answer, nobody sees how its ranks are.
            is_far = len(set(drawn.nodes)) > 1 and one["status"] == "unknown"
            assert not spoke, one
            assert is_far or one["status"] == fate, one


def _ranks_in(label: str) -> set[int]:
    """The ranks that a report means by `rank 3` or `ranks 0-1, 3`."""
    if not label.startswith("rank"):
        return set()
    spans = re.findall(r"(\d+)(?:-(\d+))?", label)
    return {rank for first, last in spans for rank in range(int(first), int(last or first) + 1)}
