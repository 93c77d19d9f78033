"""A rank of the second node never arrives: its stack has to cross from host to host."""

import os

import torch.distributed as dist
from _job import Expected, Job, main
from _nodes import NodesLauncher

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 3",),
    where=("write_table",),
    ranks=4,
    needs=("netns",),
)


def write_table(job: Job) -> None:
    os.read(job.release_fd, 1)


def run(job: Job) -> None:
    job.ready()
    if job.rank == 3 and not job.healthy:
        write_table(job)
    with weight_sync():
        phase("barrier:entry")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED, NodesLauncher)
