"""The kernel kills rank 2 for its memory while it stages the weights; the others wait.

The launcher does not reap it, so a zombie stays, as under a launcher that is busy elsewhere.
"""

import json

import torch
from _cgroup import memory_cgroup
from _job import Expected, Job, UnreapingLauncher, main, meet_in_store

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="crashed",
    culprits=("rank 2",),
    where=("out of memory", "oom", "signal 9", "killed", "stage_on_host"),
    cause="oom_or_killed",
    releasable=False,
    needs=("cgroup",),
)

_ROOM_BYTES = 64 << 20


class CappedLauncher(UnreapingLauncher):
    """Puts rank 2 under a memory limit once it is up, and takes the limit away at the end."""

    def on_ready(self) -> None:
        pid = json.loads((self.folder / "job.json").read_text())["rank 2"]
        if not self.healthy:
            self._group = memory_cgroup(self.folder.name, pid, _ROOM_BYTES)
            (self.folder / "capped").touch()

    def supervise(self) -> int:
        try:
            return super().supervise()
        finally:
            if hasattr(self, "_group"):
                self._group.rmdir()


def stage_on_host() -> torch.Tensor:
    return torch.ones(4 * _ROOM_BYTES // 4)


def run(job: Job) -> None:
    with weight_sync():
        phase("stage_weights")
        job.ready()
        if job.rank == 2 and not job.healthy:
            job.wait_for_file("capped")
            stage_on_host()
        meet_in_store(job, "out_of_memory")


if __name__ == "__main__":
    main(run, EXPECTED, CappedLauncher)
