from __future__ import annotations

import json
import os
import signal
import subprocess
import time

from tests.watchdog.sentinel.rank_program import RANK, box_of_these_tests, end
from watchdog.process_identity import started_ticks
from watchdog.sentinel.sentinel import ABORT, Sentinel
from watchdog.sentinel.silence import ALL_SILENT


def run_to_end(sentinel, start_s: float) -> None:
    """Tick as fast as it goes, an hour of its time at most."""
    now_s = start_s
    while sentinel.tick(now_s):
        now_s += 1.0
        assert now_s < start_s + 3600
    sentinel._clear_up()


def spoken_for(tmp_path, *, all_silent: bool = False) -> list[str]:
    """The boxes for which a speaker was started, for a section or for its node as a whole."""
    spoken = tmp_path / "spoken"
    lines = spoken.read_text().splitlines() if spoken.exists() else []
    return [line.split()[0] for line in lines if (ALL_SILENT in line) == all_silent]


def test_it_writes_down_how_a_rank_was_killed(start, folders, sentinel):
    local, run_folder = folders
    rank = start(RANK, local, 0, time.monotonic())
    sentinel.tick(time.monotonic())

    end(rank, signal.SIGKILL)
    run_to_end(sentinel, time.monotonic())

    ending = json.loads((run_folder / "ranks" / "0.ending").read_text())
    assert ending["pid"] == rank.pid
    assert "signal 9" in ending["text"] or "not known" in ending["text"]


def test_the_box_of_a_killed_rank_stays_in_the_run_folder_and_not_in_memory(
    start, folders, sentinel
):
    local, run_folder = folders
    rank = start(RANK, local, 0, time.monotonic())
    sentinel.tick(time.monotonic())

    end(rank, signal.SIGKILL)
    run_to_end(sentinel, time.monotonic())

    assert (run_folder / "ranks" / "0.blackbox").stat().st_size > 0
    assert not local.exists()


def test_nothing_is_left_of_a_run_that_ended_well(start, folders, sentinel):
    local, run_folder = folders
    rank = start(RANK, local, 0, time.monotonic())
    sentinel.tick(time.monotonic())

    end(rank)
    run_to_end(sentinel, time.monotonic())

    assert not local.exists()
    assert not run_folder.exists()


def test_it_goes_on_while_one_rank_lives(start, folders, sentinel):
    local, _ = folders
    first, second = (start(RANK, local, rank, time.monotonic()) for rank in (0, 1))
    sentinel.tick(time.monotonic())

    end(first)

    assert sentinel.tick(time.monotonic() + 10)
    end(second)
    assert not sentinel.tick(time.monotonic() + 20)


def test_it_speaks_once_for_ranks_that_all_are_silent(start, folders, sentinel, tmp_path):
    local, _ = folders
    ranks = [start(RANK, local, rank, 1.0) for rank in (0, 1)]
    now_s = time.monotonic()
    for second in range(5):
        sentinel.tick(now_s + second)

    for rank in ranks:
        end(rank)
    run_to_end(sentinel, now_s)

    assert spoken_for(tmp_path) in ([str(local / "0.blackbox")], [str(local / "1.blackbox")])


def test_it_speaks_again_where_its_speaker_was_killed(start, folders, tmp_path):
    local, run_folder = folders
    spoken = tmp_path / "spoken"
    killed_once = f'echo "$0" >> {spoken}; [ $(wc -l < {spoken}) -gt 1 ] || kill -KILL $$'
    sentinel = Sentinel(str(local), str(run_folder), ["/bin/sh", "-c", killed_once])
    assert sentinel.take_lock()
    rank = start(RANK, local, 0, 1.0)
    deadline_s = time.monotonic() + 30

    while not spoken.exists() or len(spoken.read_text().split()) < 2:
        sentinel.tick(time.monotonic())
        assert time.monotonic() < deadline_s

    end(rank)
    run_to_end(sentinel, time.monotonic())
    assert spoken.read_text().split() == [str(local / "0.blackbox")] * 2


def test_it_does_not_speak_for_ranks_of_a_run_that_is_being_ended(
    start, folders, sentinel, tmp_path
):
    local, _ = folders
    rank = start(RANK, local, 0, 1.0)
    (local / ABORT).write_text(json.dumps({"by": 1, "others": []}))
    now_s = time.monotonic()
    sentinel.tick(now_s)

    end(rank)
    run_to_end(sentinel, now_s)

    assert not (tmp_path / "spoken").exists()


def test_a_watchdog_thread_that_never_came_to_run_is_silent_too(start, folders, sentinel, tmp_path):
    local, _ = folders
    rank = start(RANK, local, 0, 0.0)
    now_s = time.monotonic()
    sentinel.tick(now_s)

    end(rank)
    run_to_end(sentinel, now_s)

    assert spoken_for(tmp_path) == [str(local / "0.blackbox")]


def test_time_in_which_the_host_stood_still_is_not_waited(start, folders, sentinel, tmp_path):
    local, _ = folders
    now_s = time.monotonic()
    rank = start(RANK, local, 0, now_s, "weight_sync", now_s)
    sentinel.tick(now_s)
    for second in range(100, 103):
        sentinel.tick(now_s + second)
    assert spoken_for(tmp_path) == []

    for second in range(103, 110):
        sentinel.tick(now_s + second)
    end(rank)
    run_to_end(sentinel, now_s + 110)

    assert spoken_for(tmp_path) == [str(local / "0.blackbox")]


def test_it_leaves_the_word_to_a_rank_that_can_speak(start, folders, sentinel, tmp_path):
    local, _ = folders
    now_s = time.monotonic()
    silent, able = start(RANK, local, 0, 1.0), start(RANK, local, 1, now_s)
    sentinel.tick(now_s)

    for rank in (silent, able):
        end(rank)
    run_to_end(sentinel, now_s)

    assert not (tmp_path / "spoken").exists()


def test_it_leaves_word_of_ranks_that_all_are_silent_and_late_in_nothing(
    start, folders, sentinel, tmp_path
):
    local, _ = folders
    now_s = time.monotonic()
    rank = start(RANK, local, 0, now_s, "none")
    for second in range(30):
        assert sentinel.tick(now_s + second)

    end(rank)
    run_to_end(sentinel, now_s + 30)

    assert spoken_for(tmp_path, all_silent=True) == [str(local / "0.blackbox")]


def test_it_leaves_no_word_where_no_other_node_could_wait(start, folders, sentinel, tmp_path):
    local, _ = folders
    now_s = time.monotonic()
    ranks = [start(RANK, local, rank, now_s, "none") for rank in (0, 1)]
    for second in range(30):
        assert sentinel.tick(now_s + second)

    for rank in ranks:
        end(rank)
    run_to_end(sentinel, now_s + 30)

    assert spoken_for(tmp_path, all_silent=True) == []


def test_it_leaves_word_of_a_node_whose_ranks_were_killed_before_it_ends(
    start, folders, sentinel, tmp_path
):
    local, _ = folders
    now_s = time.monotonic()
    rank = start(RANK, local, 0, now_s, "none")
    sentinel.tick(now_s)

    end(rank, signal.SIGKILL)
    run_to_end(sentinel, now_s + 1)

    assert spoken_for(tmp_path, all_silent=True) == [str(local / "0.blackbox")]


def test_it_ends_ranks_that_were_told_to_end_and_cannot(start, folders, sentinel):
    local, _ = folders
    rank = start(RANK, local, 0, time.monotonic())
    (local / ABORT).write_text(json.dumps({"by": 1, "others": []}))
    os.utime(local / ABORT, (0, 0))

    sentinel.tick(time.monotonic())

    assert rank.wait(20) == -signal.SIGKILL


def test_it_does_not_end_a_process_that_only_has_the_number_of_an_engine(folders, sentinel):
    local, _ = folders
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        order = {"by": 1, "others": [[bystander.pid, started_ticks(bystander.pid) + 1]]}
        (local / ABORT).write_text(json.dumps(order))
        os.utime(local / ABORT, (0, 0))

        sentinel.tick(time.monotonic())

        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait(20)


def test_without_a_box_it_ends_at_once_since_who_started_it_has_ended(folders, sentinel):
    local, _ = folders

    assert not sentinel.tick(time.monotonic())

    box_of_these_tests(local)
    assert sentinel.tick(time.monotonic())


def test_a_box_that_is_being_written_is_waited_for_but_not_for_ever(folders, sentinel):
    local, _ = folders
    (local / "0.blackbox").write_bytes(b"")
    now_s = time.monotonic()

    assert sentinel.tick(now_s)
    assert not sentinel.tick(now_s + 120)
