"""Rank 2 raised inside the sync and sits in its cleanup; its error was never printed."""

import os

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state=("crashed", "hung"),
    culprits=("rank 2",),
    where=("flush_metrics",),
    cause=None,
)


class BucketError(RuntimeError):
    """The weights do not fit the bucket."""


def flush_metrics(job: Job) -> None:
    os.read(job.release_fd, 1)


def sync(job: Job) -> None:
    with weight_sync():
        phase("read_weights")
        if job.rank == 2 and not job.healthy:
            raise BucketError("bucket of 0 bytes")
        phase("barrier:exit")
        dist.barrier()


def run(job: Job) -> None:
    job.ready()
    try:
        sync(job)
    except BucketError:
        flush_metrics(job)
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
