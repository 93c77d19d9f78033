"""Rank 0, which hosts the store, never arrives in the sync that the others wait in."""

import os

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 0",),
    where=("write_rollout_table",),
    cause=None,
)


def write_rollout_table(job: Job) -> None:
    os.read(job.release_fd, 1)


def run(job: Job) -> None:
    job.ready()
    if job.rank == 0 and not job.healthy:
        write_rollout_table(job)
    with weight_sync():
        phase("barrier:entry")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
