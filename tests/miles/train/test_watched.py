"""Real runs under the watchdog: what they compute, and what is left of them."""

import json
import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.slow

TWO_RANKS = (
    *("--actor-num-gpus-per-node", "2", "--rollout-num-gpus-per-engine", "2"),
    *("--colocate", "--lora-rank", "4"),
)
TIMES = ("train_s", "sync_s")


def computed(run):
    """The metrics of every step, without how long it took."""
    return [
        {name: value for name, value in step.items() if name not in TIMES} for step in run.metrics()
    ]


def files_below(folder):
    return [path for path in folder.rglob("*") if not path.is_dir()]


def black_boxes():
    """What all runs of this user have in shared memory now."""
    return {
        os.path.join(folder, name)
        for folder, _, names in os.walk("/dev/shm")
        for name in names
        if "miles-watchdog" in folder
    }


@pytest.fixture
def watchdog_on(monkeypatch):
    """Let the runs that start from now on be watched."""

    def turn_on(folder):
        monkeypatch.setenv("MILES_WATCHDOG", "1")
        monkeypatch.setenv("MILES_WATCHDOG_DIR", str(folder))
        monkeypatch.setenv("MILES_WATCHDOG_STALL_AFTER", "5")

    monkeypatch.delenv("MILES_WATCHDOG", raising=False)
    return turn_on


def test_two_hundred_syncs_compute_the_same_and_leave_a_line_each(start_run, watchdog_on, tmp_path):
    flags = (*TWO_RANKS, "--num-rollout", "200")
    alone = start_run(*flags)
    assert alone.finish(within_s=250) == 0, alone.errors
    runs = tmp_path / "runs"
    watchdog_on(runs)

    watched = start_run(*flags)
    status = watched.finish(within_s=250)

    assert status == 0, watched.errors
    assert watched.wait_until_all_ended() == []
    assert len(computed(watched)) == 200
    assert computed(watched) == computed(alone)
    (log,) = files_below(runs)
    assert log.name == "syncs.jsonl"
    syncs = [json.loads(line) for line in log.read_text().splitlines()]
    assert [sync["index"] for sync in syncs] == list(range(1, 202))
    assert not any("incident" in sync or "raised" in sync for sync in syncs)
    # Its first line says that it is on, and there is nothing else to say.
    assert watched.errors.count("[miles-watchdog]") == 1
    assert [box for box in black_boxes() if log.parent.name in box] == []


def test_a_killed_rank_ends_the_run_as_without_the_watchdog(start_run, watchdog_on, tmp_path):
    watchdog_on(tmp_path / "runs")
    run = start_run(*TWO_RANKS, "--num-rollout", "100000")
    run.wait_for_line("rollout 1 ")

    run.ranks()[1].kill()
    status = run.finish()

    assert status == 1
    assert "rank 1 failed" in run.errors
    assert run.wait_until_all_ended() == []


@pytest.fixture
def full_disk(tmp_path):
    """A file system without a free byte."""
    disk = tmp_path / "full"
    disk.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if mount is None or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs root")
    try:
        with pytest.raises(OSError, match="No space left"):
            (disk / "filler").write_bytes(bytes(1_000_000))
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture
def no_folder(tmp_path):
    """A place where no folder can be made, not even by root."""
    place = tmp_path / "not-a-folder"
    place.write_text("")
    return place


@pytest.mark.parametrize("place", ["full_disk", "no_folder"])
def test_training_does_not_depend_on_the_watchdogs_folder(start_run, watchdog_on, request, place):
    flags = (*TWO_RANKS, "--num-rollout", "4")
    alone = start_run(*flags)
    assert alone.finish() == 0, alone.errors
    watchdog_on(request.getfixturevalue(place) / "runs")

    watched = start_run(*flags)
    status = watched.finish()

    assert status == 0, watched.errors
    assert computed(watched) == computed(alone)
    assert "Traceback" not in watched.errors
    assert watched.wait_until_all_ended() == []
