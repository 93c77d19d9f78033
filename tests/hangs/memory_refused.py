"""Rank 2 is refused memory for the staged weights, and sits in its cleanup; the others wait.

The limit stays: the watchdog inside that rank has hardly any memory either.
"""

import os

import torch.distributed as dist
from _job import Expected, Job, main
from _memory_limit import ROOM_BYTES, limit_memory

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state=("crashed", "hung"),
    culprits=("rank 2",),
    where=("after an exception ended its weight_sync",),
)


def stage_on_host() -> bytearray:
    return bytearray(4 * ROOM_BYTES)


def flush_metrics(job: Job) -> None:
    os.read(job.release_fd, 1)


def sync(job: Job) -> None:
    with weight_sync():
        phase("stage_weights")
        if job.rank == 2 and not job.healthy:
            limit_memory()
            stage_on_host()
        phase("barrier:exit")
        dist.barrier()


def run(job: Job) -> None:
    job.ready()
    try:
        sync(job)
    except MemoryError:
        flush_metrics(job)
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
