import errno
import os
import shutil
from dataclasses import replace

import pytest

from watchdog.blackbox.reading import read_blackbox
from watchdog.guest import notices
from watchdog.incident.folder import IncidentFolder
from watchdog.process_identity import started_ticks
from watchdog.run.dead_runs import settle
from watchdog.run.folder import RunFolder
from watchdog.settings import Settings


@pytest.fixture
def folder(tmp_path, identity, monkeypatch):
    monkeypatch.setattr(notices, "_said", set())

    def make(**changes):
        mine = {"pid": os.getpid(), "pid_started_ticks": started_ticks(os.getpid())}
        return RunFolder(
            Settings(dir=str(tmp_path / "runs")),
            "a-run",
            replace(identity, **(mine | changes)),
            shared_memory=tmp_path / "shm",
        )

    return make


def test_the_box_lies_in_shared_memory_and_is_linked_into_the_run(folder, tmp_path):
    one = folder()
    box = one.create_blackbox()
    one.prepare(box)

    link = tmp_path / "runs" / "a-run" / "ranks" / "0.blackbox"

    assert link.is_symlink()
    assert box.path.is_relative_to(tmp_path / "shm")
    assert read_blackbox(link).rank == 0


@pytest.mark.parametrize("wanted", ["x" * 3000, "x" * 256, "/".join(["x" * 200] * 25)])
def test_a_folder_whose_name_is_too_long_is_replaced_by_one_in_the_temporary_folder(
    wanted, tmp_path, identity, monkeypatch, capfd
):
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    one = RunFolder(Settings(dir=f"/{wanted}"), "a-run", identity, shared_memory=tmp_path / "shm")

    is_prepared = one.prepare(one.create_blackbox())
    incident = IncidentFolder(one.path, "weight_sync-0001")
    written = incident.write("report.json", "{}")

    assert is_prepared
    assert written == tmp_path / f"miles-watchdog-{os.getuid()}/a-run/incidents" / (
        "weight_sync-0001/report.json"
    )
    assert incident.find("report.json") == written
    assert incident.files("*.json") == [written]
    assert "too long" in capfd.readouterr().err


def test_an_incident_of_a_folder_with_too_long_a_name_lies_in_the_substitute(tmp_path):
    incident = IncidentFolder(tmp_path / ("x" * 300), "weight_sync-0001", tmp_path / "other")

    written = incident.write("report.json", "{}")

    assert written.is_relative_to(tmp_path / "other")
    assert incident.find("report.md") is None


def test_without_shared_memory_it_lies_in_the_run(folder, tmp_path):
    (tmp_path / "shm").write_text("not a folder")
    one = folder()

    box = one.create_blackbox()
    one.prepare(box)

    assert box.path == tmp_path / "runs" / "a-run" / "ranks" / "0.blackbox"
    assert not box.path.is_symlink()


def test_on_a_full_disk_it_lies_in_plain_memory_and_says_so(folder, monkeypatch, capfd):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)

    box = folder().create_blackbox()
    box.heartbeat(1.0)

    assert box.path is None
    assert box.reading().heartbeat_s == 1.0
    assert "No space left on device" in capfd.readouterr().err


def test_an_unwritable_run_folder_costs_one_line(folder, tmp_path, capfd):
    (tmp_path / "runs").write_text("a file where the folder should be")
    one = folder()

    one.prepare(one.create_blackbox())
    one.prepare(one.create_blackbox())

    assert capfd.readouterr().err.count("\n") == 1


def test_the_last_one_out_clears_up(folder, tmp_path):
    first, second = folder(), folder(rank=1)
    boxes = []
    for one in (first, second):
        boxes.append(one.create_blackbox())
        one.prepare(boxes[-1])

    boxes[0].exited()
    first.leave()
    assert read_blackbox(first.ranks / "0.blackbox").exited
    boxes[1].exited()
    second.leave()

    assert list((tmp_path / "shm").iterdir()) == []
    assert not (tmp_path / "runs").exists()


def test_boxes_of_a_run_in_which_one_died_stay(folder):
    first, second = folder(), folder(rank=1)
    for one in (first, second):
        one.prepare(one.create_blackbox())

    box = second.create_blackbox()
    box.exited()
    second.leave()

    assert not read_blackbox(first.ranks / "0.blackbox").exited


def test_a_process_does_not_take_the_box_of_another_live_one(folder):
    parent = os.getppid()
    folder(pid=parent, pid_started_ticks=started_ticks(parent)).create_blackbox()

    assert folder().name == f"0-{os.getpid()}"


def test_a_restarted_rank_takes_the_box_of_the_dead_one(folder):
    folder(pid=parent_of_nobody(), pid_started_ticks=1).create_blackbox()

    assert folder().name == "0"


def parent_of_nobody():
    return 2**22 + 1  # above the kernel's largest pid


def test_an_engine_worker_has_a_name_of_its_own(folder):
    assert folder(role="engine_worker").name == f"engine_worker-{os.getpid()}"


def test_the_lowest_rank_of_the_host_is_known_by_the_boxes(folder):
    for rank in (5, 4, 7):
        folder(rank=rank).create_blackbox()

    assert folder(rank=7).lowest_rank_here() == 4


def test_a_dead_child_of_a_rank_keeps_nothing_alive(folder, tmp_path):
    first = folder()
    box = first.create_blackbox()
    child = folder(role="other", pid=parent_of_nobody())
    child.create_blackbox()

    box.exited()
    first.leave()

    assert list((tmp_path / "shm").iterdir()) == []


def test_the_last_one_out_removes_empty_stack_files_of_others(folder, tmp_path):
    first = folder()
    box = first.create_blackbox()
    first.prepare(box)
    (first.ranks / "other-7.faulthandler").touch()
    (first.ranks / "other-8.faulthandler").write_text("Thread 0x1")

    box.exited()
    first.leave()

    assert [path.name for path in first.ranks.iterdir()] == ["other-8.faulthandler"]


def test_what_a_killed_run_left_in_shared_memory_goes_into_its_folder(folder, tmp_path):
    killed = folder(pid=parent_of_nobody())
    box = killed.create_blackbox()
    link = killed.ranks / "0.blackbox"
    killed.ranks.mkdir(parents=True)
    link.symlink_to(box.path)

    settle(one_root(tmp_path))

    assert not link.is_symlink()
    assert read_blackbox(link).rank == 0
    assert not box.path.exists()


def test_the_empty_file_for_a_stack_of_a_killed_rank_goes_and_a_written_one_stays(folder, tmp_path):
    for rank in (0, 1):
        killed = folder(rank=rank, pid=parent_of_nobody())
        box = killed.create_blackbox()
        killed.ranks.mkdir(parents=True, exist_ok=True)
        (killed.ranks / box.path.name).symlink_to(box.path)
    (killed.ranks / "0.faulthandler").touch()
    (killed.ranks / "1.faulthandler").write_text("Timeout!")

    settle(one_root(tmp_path))

    names = {path.name for path in killed.ranks.iterdir()}
    assert names == {"0.blackbox", "1.blackbox", "1.faulthandler"}


def test_how_a_rank_was_killed_goes_with_its_box(folder, tmp_path):
    killed = folder(pid=parent_of_nobody())
    box = killed.create_blackbox()
    killed.ranks.mkdir(parents=True)
    (killed.ranks / box.path.name).symlink_to(box.path)
    box.path.with_suffix(".ending").write_text("{}")

    settle(one_root(tmp_path))

    assert (killed.ranks / "0.ending").read_text() == "{}"


def test_how_an_earlier_process_of_the_name_ended_is_told_no_longer(folder):
    rank = folder(rank=0)
    rank.ranks.mkdir(parents=True)
    (rank.ranks / "0.ending").write_text("{}")

    rank.prepare(rank.create_blackbox())

    assert not (rank.ranks / "0.ending").exists()


def test_a_live_run_is_left_alone(folder, tmp_path):
    one = folder()
    one.prepare(one.create_blackbox())

    settle(one_root(tmp_path))

    assert (one.ranks / "0.blackbox").is_symlink()


def one_root(tmp_path):
    """The folder of this user in the shared memory of the test."""
    (root,) = (tmp_path / "shm").iterdir()
    return root


def test_an_aborted_run_leaves_no_folder_either(folder, tmp_path):
    box = folder(pid=parent_of_nobody()).create_blackbox()
    (box.path.parent / "abort.json").write_text("{}")
    (box.path.parent / "sentinel.lock").write_text(f"{parent_of_nobody()} 1")

    settle(one_root(tmp_path))

    assert list(one_root(tmp_path).iterdir()) == []


def test_a_run_whose_sentinel_still_reads_the_boxes_is_left_alone(folder, tmp_path):
    box = folder(pid=parent_of_nobody()).create_blackbox()
    sentinel = f"{os.getpid()} {started_ticks(os.getpid())}"
    (box.path.parent / "sentinel.lock").write_text(sentinel)

    settle(one_root(tmp_path))

    assert box.path.exists()


def test_the_folder_of_a_run_that_just_begins_is_left_alone(folder, tmp_path):
    folder().create_blackbox().path.unlink()

    settle(one_root(tmp_path))

    assert len(list(one_root(tmp_path).iterdir())) == 1


def test_of_runs_whose_folders_refuse_the_boxes_only_the_last_ones_stay(
    folder, tmp_path, monkeypatch
):
    def refuse(*args):
        raise PermissionError(errno.EACCES, "Permission denied")

    first = folder(pid=parent_of_nobody()).create_blackbox().path
    root = one_root(tmp_path)
    for number in range(5):
        shutil.copytree(first.parent, root / f"run-{number}")
        os.utime(root / f"run-{number}", (number, number))
    monkeypatch.setattr("watchdog.run.dead_runs._move", refuse)

    settle(root, max_kept=2)

    assert sorted(run.name for run in root.iterdir()) == [first.parent.name, "run-4"]
