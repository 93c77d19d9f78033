"""What a job leaves behind when parts of it are killed: what tells of the killed, and no more."""

import os
import signal
from pathlib import Path

import pytest

from watchdog.node.duties import sentinel_pid

pytestmark = pytest.mark.slow


class Watched:
    """A job whose sentinel is there, and whose ranks have opened all their files."""

    def __init__(self, job):
        self.job = job
        self.ranks = job.folder / "runs" / job.run / "ranks"
        self.local = job.wait_for(self._links)
        self.sentinel = job.wait_for(lambda: sentinel_pid(self.local))
        job.wait_for(lambda: len(list(self.ranks.glob("*.faulthandler"))) == len(job.ranks))

    def _links(self):
        links = list(self.ranks.glob("*.blackbox"))
        return links[0].resolve().parent if len(links) == len(self.job.ranks) else None

    def sentinels(self) -> list[int]:
        """Every sentinel of the run, also one that only is about to start."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if os.fsencode(self.local) in words:
                found.append(int(path.name))
        return found

    def kill_everything(self):
        """End all of it before any part could look at the end of another."""
        for rank in self.job.ranks:
            rank.send_signal(signal.SIGSTOP)
        while pids := self.sentinels():
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        for rank in self.job.ranks:
            rank.kill()
            rank.wait(20)

    def finish(self, *ranks: int):
        for rank in ranks:
            self.job.ranks[rank].communicate("x\n", timeout=40)

    def left(self) -> set[str]:
        """What lies in the run folder in the end; in memory nothing may."""
        self.job.wait_for(lambda: not self.local.exists())
        folder = self.ranks.parent
        return {str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir()}


@pytest.fixture
def watched(job):
    def start(*ways, **settings):
        return Watched(job(*ways, **settings))

    return start


def of_killed(*ranks: int) -> set[str]:
    return {f"ranks/{rank}{suffix}" for rank in ranks for suffix in (".blackbox", ".ending")}


def test_of_a_killed_rank_and_one_that_ended_well_only_the_killed_is_told_of(watched):
    run = watched("finish", "finish", MILES_WATCHDOG_STALL_AFTER="60")

    run.job.ranks[0].kill()
    run.finish(1)

    assert run.left() == of_killed(0)


def test_of_ranks_that_all_were_killed_their_sentinel_leaves_what_tells_of_them(watched):
    run = watched("finish", "finish", MILES_WATCHDOG_STALL_AFTER="60")

    for rank in run.job.ranks:
        rank.kill()

    assert run.left() == of_killed(0, 1)


def test_no_lock_is_left_of_an_incident_whose_leader_was_killed(watched):
    run = watched("finish", "finish", MILES_WATCHDOG_STALL_AFTER="3")
    run.job.wait_for(run.job.report)

    for rank in run.job.ranks:
        rank.kill()

    left = run.left()
    assert of_killed(0, 1) <= left
    assert [name for name in left if name.endswith((".lock", ".faulthandler"))] == []


def test_a_sentinel_that_is_killed_at_the_end_leaves_nothing(watched):
    run = watched("finish", "finish", MILES_WATCHDOG_STALL_AFTER="60")

    os.kill(run.sentinel, signal.SIGKILL)
    run.finish(0, 1)

    assert run.left() == {"syncs.jsonl"}


def test_what_is_left_where_everything_was_killed_the_next_run_clears_up(watched, job):
    run = watched("finish", "finish", MILES_WATCHDOG_STALL_AFTER="60")
    run.kill_everything()

    other = watched("finish", MILES_WATCHDOG_STALL_AFTER="60")
    left = run.left()
    other.finish(0)

    assert left == {"ranks/0.blackbox", "ranks/1.blackbox"}
