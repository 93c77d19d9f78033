"""Rank 0 still sends bucket 0, which only it does; the others gather bucket 1 already."""

import torch
import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 0",),
    where=("send_bucket", "send"),
    cause="collective_mismatch",
    releasable=False,
)


def gather_bucket(bucket: torch.Tensor, job: Job) -> None:
    dist.all_gather([torch.empty_like(bucket) for _ in range(job.world_size)], bucket)


def send_bucket(bucket: torch.Tensor) -> None:
    dist.send(bucket, dst=1, tag=7)


def receive_bucket(bucket: torch.Tensor) -> None:
    dist.recv(bucket, src=0, tag=7)


def run(job: Job) -> None:
    bucket = torch.ones(1 << 20)
    with weight_sync():
        for index in range(2):
            phase("gather")
            gather_bucket(bucket, job)
            phase("send_chunk")
            if index == 0:
                job.ready()
            if job.rank == 0:
                send_bucket(bucket)
            elif job.rank == 1 and job.healthy:
                receive_bucket(bucket)


if __name__ == "__main__":
    main(run, EXPECTED)
