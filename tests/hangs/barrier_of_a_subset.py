"""Ranks 0 and 1 enter a barrier of all ranks in a branch that rank 2 does not take."""

import os

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 2",),
    where=("wait_for_next_rollout", "outside"),
    cause="rank_subset_collective",
)


def wait_for_next_rollout(job: Job) -> None:
    os.read(job.release_fd, 1)


def run(job: Job) -> None:
    has_adapters = job.rank < 2 or job.healthy
    job.ready()
    with weight_sync():
        phase("send_chunk")
        if has_adapters:
            dist.barrier()
    if not has_adapters:
        wait_for_next_rollout(job)
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
