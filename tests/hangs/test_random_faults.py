"""Random faults in real jobs that hang: the report comes, names every rank, and nothing stays."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest
from _harness import Program, running, wait_for
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


def strike(program: Program, what: str, rank: int) -> None:
    number = signal.SIGKILL if what.startswith("kill") else signal.SIGSTOP
    pid = program.pids()[f"rank {rank}"]
    if what.endswith("sentinel"):
        # There may be none at this moment: it is taken over from one that was struck before.
        pid = sentinel_pid(local_folder(program)) or 0
    if pid:
        os.kill(pid, number)


def schedule(seed: int, tmp_path) -> None:
    dice = random.Random(seed)
    name = dice.choice(PROGRAMS)
    faults = [
        (
            dice.choice(tuple(MOMENTS)),
            dice.choice((0.0, 0.1, 0.5)),
            dice.choice(("kill rank", "stop rank", "kill sentinel", "stop sentinel")),
            dice.randrange(NUM_RANKS),
        )
        for _ in range(dice.randint(1, 2))
    ]
    said = f"seed {seed}: {name}, {faults}"
    with running(name, tmp_path, STALL_AFTER=3) as program:
        program.wait_until_ready()
        for moment, delay_s, what, rank in faults:

            def has_come(pattern: str = MOMENTS[moment]) -> bool | None:
                folder = program.watchdog_dir / program.run
                return True if program.reports() or list(folder.glob(pattern)) else None

            wait_for(f"{moment} ({said})", has_come, 120)
            threading.Event().wait(delay_s)
            strike(program, what, rank)
        report = program.report()
        _continue_sentinel(program)

    assert ranks_named(report) == set(range(NUM_RANKS)), said
    assert report["state"] in ("hung", "crashed"), said


def _continue_sentinel(program: Program) -> None:
    pid = sentinel_pid(local_folder(program))
    if pid is not None:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("seed", range(2))
def test_a_job_is_reported_whatever_dies_in_it(seed, tmp_path):
    schedule(seed, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_job_is_reported_whatever_dies_in_it_many_times(seed, tmp_path):
    schedule(seed, tmp_path)
