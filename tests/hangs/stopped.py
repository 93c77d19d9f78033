"""Rank 1 is stopped (SIGSTOP), as by a debugger or a job scheduler, before the barrier."""

import json
import os
import signal

import torch.distributed as dist
from _job import Expected, Job, Launcher, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 1",),
    where=("stopped", "SIGSTOP", "read_weights"),
    cause=None,
)


class StoppedLauncher(Launcher):
    """Continues the rank when the job is released."""

    def on_release(self) -> None:
        pids = json.loads((self.folder / "job.json").read_text())
        os.kill(pids["rank 1"], signal.SIGCONT)


def run(job: Job) -> None:
    with weight_sync():
        phase("read_weights")
        job.ready()
        if job.rank == 1 and not job.healthy:
            os.kill(os.getpid(), signal.SIGSTOP)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED, StoppedLauncher)
