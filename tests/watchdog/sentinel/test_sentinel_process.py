"""The sentinel as a process: one a node, small, and replaced when it is stuck."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.watchdog.sentinel.rank_program import RANK, box_of_these_tests, end
from watchdog.blackbox.writing import BlackBox
from watchdog.node.duties import sentinel_command, sentinel_pid
from watchdog.process_identity import process_identity
from watchdog.sentinel.sentinel import LOCK, Sentinel


def test_a_node_has_one(folders, sentinel):
    local, run_folder = folders

    assert not Sentinel(str(local), str(run_folder), []).take_lock()


def test_another_one_may_follow_a_dead_one(folders):
    local, run_folder = folders
    box_of_these_tests(local)
    process = subprocess.Popen(sentinel_command(local, run_folder))
    until_locked(local)
    assert sentinel_pid(local) == process.pid

    process.kill()
    process.wait(20)

    assert sentinel_pid(local) is None
    assert Sentinel(str(local), str(run_folder), []).take_lock()


def until_locked(local: Path) -> None:
    deadline_s = time.monotonic() + 30
    while sentinel_pid(local) is None:
        assert time.monotonic() < deadline_s, "no sentinel within 30 s"
        os.sched_yield()


def test_one_that_is_stuck_is_ended(folders):
    local, run_folder = folders
    box_of_these_tests(local)
    process = subprocess.Popen(sentinel_command(local, run_folder))
    until_locked(local)
    process.send_signal(signal.SIGSTOP)
    os.utime(local / LOCK, (0, 0))

    assert sentinel_pid(local) is None

    assert process.wait(20) == -signal.SIGKILL


def test_it_has_less_than_15_mb_to_itself(start, folders):
    local, run_folder = folders
    ranks = [start(RANK, local, rank, time.monotonic()) for rank in range(2)]
    process = subprocess.Popen(sentinel_command(local, run_folder))
    until_locked(local)
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    finally:
        for rank in ranks:
            end(rank)
        process.wait(30)
    fields = {line.split(":")[0]: line.split()[1] for line in lines[1:]}
    own_kb = int(fields["Private_Clean"]) + int(fields["Private_Dirty"])

    assert own_kb < 15_000
    assert int(fields["Rss"]) < 15_000


def test_a_look_at_eight_ranks_costs_less_than_a_thousandth_of_the_time_between_looks(
    folders, sentinel
):
    local, _ = folders
    for rank in range(8):
        identity = process_identity({}, rank=rank, world_size=8).as_json()
        box = BlackBox.create(local / f"{rank}.blackbox", identity)
        box.heartbeat(time.monotonic())
    sentinel.tick(time.monotonic())
    costs_s = []
    for _ in range(50):
        before_s = time.process_time()
        sentinel.tick(time.monotonic())
        costs_s.append(time.process_time() - before_s)

    assert statistics.median(costs_s) < 0.001


def test_it_needs_nothing_beyond_the_standard_library():
    code = (
        "import json, sys; import watchdog.sentinel.sentinel; "
        "print(json.dumps([m for m in sys.modules if m.startswith('watchdog.')]))"
    )
    said = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True, text=True, timeout=60, check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip

    assert set(json.loads(said.stdout)) == {
        "watchdog.blackbox",
        "watchdog.blackbox.layout",
        "watchdog.guest",
        "watchdog.guest.lost_time",
        "watchdog.sentinel",
        "watchdog.sentinel.box",
        "watchdog.sentinel.sentinel",
        "watchdog.sentinel.speakers",
        "watchdog.sentinel.endings",
        "watchdog.sentinel.leavings",
        "watchdog.sentinel.run_roster",
        "watchdog.sentinel.silence",
    }
