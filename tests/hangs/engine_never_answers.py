"""Rank 0 waits for an engine that waits for requests that never end."""

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("engine 0",),
    where=(
        "wait_for_running_requests",
        "update_weights",
    ),
    cause="engine_rpc_stuck",
    engine="never_answers",
    releasable=True,
)


def update_engine_weights(job: Job) -> None:
    job.request("/update_weights_from_tensor")


def run(job: Job) -> None:
    with weight_sync():
        phase("pause_generation")
        if job.rank == 0:
            job.request("/pause_generation")
        phase("send_chunk")
        job.ready()
        if job.rank == 0:
            update_engine_weights(job)
        phase("barrier:exit")
        dist.barrier()
        if job.rank == 0:
            job.request("/continue_generation")


if __name__ == "__main__":
    main(run, EXPECTED)
