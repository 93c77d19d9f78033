"""Rank 1 never arrives at the barrier: it takes a branch that waits for something else."""

import os

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 1",),
    where=("load_reward_model",),
    cause=None,
)


def load_reward_model(job: Job) -> None:
    os.read(job.release_fd, 1)


def run(job: Job) -> None:
    with weight_sync():
        phase("barrier:entry")
        job.ready()
        if job.rank == 1 and not job.healthy:
            load_reward_model(job)
        dist.barrier()
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
