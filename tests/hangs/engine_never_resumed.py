"""Generation was paused for the sync and never continued: the next rollout waits for ever."""

import torch
import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("engine 0",),
    where=("wait_until_generation_continues", "generate_rollout", "pause"),
    cause="engine_rpc_stuck",
    engine="healthy",
)


def generate_rollout(job: Job) -> None:
    job.request("/generate")


def run(job: Job) -> None:
    with weight_sync():
        phase("pause_generation")
        if job.rank == 0:
            job.request("/pause_generation")
        phase("send_chunk")
        if job.rank == 0:
            job.request("/update_weights_from_tensor")
        phase("barrier:exit")
        dist.barrier()
        if job.rank == 0 and job.healthy:
            job.request("/continue_generation")
    job.ready()
    if job.rank == 0:
        generate_rollout(job)
    dist.broadcast(torch.zeros(8), src=0)
    dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
