"""Two groups of the same ranks: rank 1 enters them in the other order than its peers."""

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 1",),
    where=("meet_in", "barrier"),
    cause="collective_mismatch",
    releasable=False,
)


def meet_in(group: dist.ProcessGroup) -> None:
    dist.barrier(group)


def run(job: Job) -> None:
    tensor_parallel, data_parallel = dist.new_group(), dist.new_group()
    order = [tensor_parallel, data_parallel]
    if job.rank == 1 and not job.healthy:
        order.reverse()
    with weight_sync():
        phase("send_chunk")
        job.ready()
        for group in order:
            meet_in(group)


if __name__ == "__main__":
    main(run, EXPECTED)
