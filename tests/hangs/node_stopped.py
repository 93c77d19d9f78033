"""Both ranks of the second node are stopped inside the sync: none of them can say so."""

import os
import signal
import time

import torch.distributed as dist
from _job import Expected, Job, main
from _nodes import NodesLauncher

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 2", "rank 3"),
    where=("stopped",),
    ranks=4,
    releasable=False,
    needs=("netns",),
)


def run(job: Job) -> None:
    if not job.healthy:
        # Long enough in the run for each node to have said where its ranks are.
        time.sleep(4)
    with weight_sync():
        phase("barrier:entry")
        job.ready()
        if job.rank >= 2 and not job.healthy:
            os.kill(os.getpid(), signal.SIGSTOP)
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED, NodesLauncher)
