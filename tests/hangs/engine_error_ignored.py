"""The engine refused the weights; nobody looked, and rank 0 polls for the new version."""

import time

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=(("rank 0", "engine 0"),),
    where=("wait_for_weight_version", "get_weight_version"),
    cause=None,
    engine="refuses",
)


def wait_for_weight_version(job: Job, version: int) -> None:
    while int(job.request("/get_weight_version")) < version:
        time.sleep(0.2)
        if job.is_released():
            return


def run(job: Job) -> None:
    with weight_sync():
        version = int(job.request("/get_weight_version")) + 1 if job.rank == 0 else 0
        phase("send_chunk")
        if job.rank == 0:
            job.request("/update_weights_from_tensor")
        phase("wait_for_weight_version")
        job.ready()
        if job.rank == 0:
            wait_for_weight_version(job, version)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
