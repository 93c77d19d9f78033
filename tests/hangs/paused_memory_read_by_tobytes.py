"""Rank 1 reads paused weights through `tobytes()`, which keeps the GIL: no thread of it runs."""

import torch
import torch.distributed as dist
from _job import Expected, Job, main
from _paused_memory import PausedTensor

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 1",),
    where=("serialize",),
    cause="paused_memory_read",
    releasable=False,
)


def serialize(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.numpy().tobytes())


def run(job: Job) -> None:
    weights = PausedTensor(1 << 20)
    if job.rank == 1 and not job.healthy:
        weights.pause()
    with weight_sync():
        phase("read_weights")
        job.ready()
        serialize(weights.tensor)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
