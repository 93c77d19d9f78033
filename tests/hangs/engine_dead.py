"""Rank 0 asks, again and again, an engine that died during the first update."""

import time

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state=("crashed", "hung"),
    culprits=(("engine 0", "rank 0"),),
    where=("flush_cache", "dead", "zombie", "exit status 1"),
    cause="engine_dead",
    engine="dies",
    releasable=False,
)


def try_request(job: Job, path: str) -> bool:
    try:
        job.request(path)
    except OSError:
        return False
    return True


def flush_cache(job: Job) -> None:
    while not try_request(job, "/flush_cache"):
        time.sleep(1)


def run(job: Job) -> None:
    with weight_sync():
        phase("send_chunk")
        if job.rank == 0:
            try_request(job, "/update_weights_from_tensor")
        phase("flush_cache")
        job.ready()
        if job.rank == 0:
            flush_cache(job)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
