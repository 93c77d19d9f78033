"""The kernel kills rank 2 for its memory while it stages the weights; the others wait.

The launcher does not reap it, so a zombie stays, as under a launcher that is busy elsewhere.
"""

import datetime
import json

import torch
import torch.distributed as dist
from _cgroup import memory_cgroup
from _job import Expected, Job, Launcher, main

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


class CappedLauncher(Launcher):
    """Puts rank 2 under a memory limit once it is up, and takes the limit away at the end."""

    reaps = False

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
    store = dist.distributed_c10d._get_default_store()
    with weight_sync():
        phase("stage_weights")
        job.ready()
        if job.rank == 2 and not job.healthy:
            job.wait_for_file("capped")
            stage_on_host()
        store.set(f"staged/{job.rank}", "done")
        phase("wait_for_stagers")
        keys = [f"staged/{rank}" for rank in range(job.world_size)]
        store.wait(keys, datetime.timedelta(minutes=30))


if __name__ == "__main__":
    main(run, EXPECTED, CappedLauncher)
