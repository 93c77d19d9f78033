"""All ranks are stopped inside the sync: nobody in the job can say so, only the sentinel."""

import json
import os
import signal

import torch.distributed as dist
from _job import Expected, Job, Launcher, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=(("rank 0", "rank 1"),),
    where=("stopped", "read_weights"),
    ranks=2,
)


class StoppedLauncher(Launcher):
    """Continues the ranks when the job is released."""

    def on_release(self) -> None:
        pids = json.loads((self.folder / "job.json").read_text())
        for rank in range(self.expected.ranks):
            os.kill(pids[f"rank {rank}"], signal.SIGCONT)


def run(job: Job) -> None:
    with weight_sync():
        phase("read_weights")
        job.ready()
        if not job.healthy:
            os.kill(os.getpid(), signal.SIGSTOP)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED, StoppedLauncher)
