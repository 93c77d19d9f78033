"""Rank 1 is in an all-reduce of the group in which the others are in a barrier."""

import torch
import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 1",),
    where=("all_reduce", "average_adapter_norm"),
    cause="collective_mismatch",
    releasable=False,
)


def average_adapter_norm() -> None:
    dist.all_reduce(torch.ones(4))


def run(job: Job) -> None:
    group = dist.new_group()
    with weight_sync():
        phase("send_chunk")
        job.ready()
        if job.rank == 1 and not job.healthy:
            average_adapter_norm()
        dist.barrier(group)
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
