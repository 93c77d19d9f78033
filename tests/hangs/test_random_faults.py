"""Faults in real jobs that hang: the report comes, names every rank, and nothing stays.

`tests/watchdog/schedules` does the same thousands of times, on processes that start quickly.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _harness import REPORT_WITHIN_S, Program, running, wait_for
from small_disk import SmallDisk
from test_faults import local_folder
from test_hangs import ranks_named

from watchdog.node.duties import sentinel_pid

pytestmark = pytest.mark.slow

PROGRAMS = (
    "rank_never_arrives",
    "rank_zero_never_arrives",
    "barrier_of_a_subset",
    "different_collectives",
    "engine_never_answers",
    "gil_held",
    "lock_left_held",
)
MOMENTS = {
    "at once": "ranks/*.blackbox",
    "evidence": "incidents/*/raw/rank-*.json",
    "leader": "incidents/*/leader-*.lock",
    "report soon": "incidents/*/evidence.json",
}
NUM_RANKS = 3


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong: `what` at `moment` + `delay_s`, of `rank` where it is a rank's."""

    what: str
    moment: str
    delay_s: float = 0.0
    rank: int = 0

    def strike(self, program: Program, disk: SmallDisk) -> None:
        pattern = MOMENTS[self.moment]

        def has_come() -> bool | None:
            folder = program.watchdog_dir / program.run
            return True if reports(program) or list(folder.glob(pattern)) else None

        wait_for(str(self), has_come, 120)
        threading.Event().wait(self.delay_s)
        if self.what == "fill disk":
            disk.fill()
            return
        number = signal.SIGKILL if self.what.startswith("kill") else signal.SIGSTOP
        pid = program.pids()[f"rank {self.rank}"]
        if self.what.endswith("sentinel"):
            # There may be none at this moment: it is taken over from one that was struck before.
            pid = sentinel_pid(local_folder(program)) or 0
        if pid:
            os.kill(pid, number)


CHOSEN = {
    "the_host_of_the_store_is_killed": (
        "rank_never_arrives",
        [Fault("kill rank", "evidence", rank=0)],
    ),
    "the_disk_fills_up": ("gil_held", [Fault("fill disk", "leader")]),
    "the_sentinel_is_killed_and_a_rank_stopped": (
        "barrier_of_a_subset",
        [Fault("kill sentinel", "at once"), Fault("stop rank", "evidence", 0.1, rank=1)],
    ),
}


@pytest.mark.parametrize("chosen", CHOSEN)
def test_a_job_is_reported_though(chosen, tmp_path, monkeypatch):
    check_job(*CHOSEN[chosen], tmp_path, monkeypatch)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(12))
def test_a_job_is_reported_whatever_dies_in_it(seed, tmp_path, monkeypatch):
    dice = random.Random(seed)
    name = dice.choice(PROGRAMS)
    kinds = ("kill rank", "stop rank", "kill sentinel", "stop sentinel", "fill disk")
    faults = [
        Fault(
            what=dice.choice(kinds),
            moment=dice.choice(tuple(MOMENTS)),
            delay_s=dice.choice((0.0, 0.1, 0.5)),
            # Rank 0 is where the store is.
            rank=dice.choice((0, dice.randrange(NUM_RANKS))),
        )
        for _ in range(dice.randint(1, 2))
    ]
    check_job(name, faults, tmp_path, monkeypatch)


def check_job(name: str, faults: list[Fault], tmp_path: Path, monkeypatch) -> None:
    # A report that the disk refuses goes to the folder for temporary files.
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    disk = SmallDisk(tmp_path / "watchdog")
    try:
        with running(name, tmp_path, STALL_AFTER=3) as program:
            program.wait_until_ready()
            for fault in faults:
                fault.strike(program, disk)
            report = first_report(program)
            _continue_sentinel(program)
    finally:
        disk.remove()

    assert ranks_named(report) == set(range(NUM_RANKS)), (name, faults)
    assert report["state"] in ("hung", "crashed"), (name, faults)


def reports(program: Program) -> list[Path]:
    return [*program.reports(), *program.watchdog_dir.parent.glob("tmp/**/report.json")]


def first_report(program: Program) -> dict[str, Any]:
    wait_for("report.json", lambda: reports(program) or None, REPORT_WITHIN_S)
    return dict(json.loads(reports(program)[0].read_text()))


def _continue_sentinel(program: Program) -> None:
    pid = sentinel_pid(local_folder(program))
    if pid is not None:
        os.kill(pid, signal.SIGCONT)
