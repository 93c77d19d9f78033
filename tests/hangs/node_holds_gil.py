"""Both ranks of the second node hold the GIL on the way to the sync: they are late in nothing."""

import ctypes
import time

import torch.distributed as dist
from _job import Expected, Job, main
from _nodes import NodesLauncher

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 2", "rank 3"),
    where=("wait_in_c",),
    ranks=4,
    releasable=False,
    needs=("netns",),
)


def wait_in_c() -> None:
    # `PyDLL` keeps the GIL during the call.
    ctypes.PyDLL(None).pause()


def run(job: Job) -> None:
    if not job.healthy:
        # Long enough in the run for each node to have said where its ranks are.
        time.sleep(4)
    job.ready()
    if job.rank >= 2 and not job.healthy:
        wait_in_c()
    with weight_sync():
        phase("barrier:entry")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED, NodesLauncher)
