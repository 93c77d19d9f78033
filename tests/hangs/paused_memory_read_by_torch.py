"""Rank 1 reads weights that are paused without a copy, through a torch operator."""

import torch
import torch.distributed as dist
from _job import Expected, Job, main
from _paused_memory import PausedTensor

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 1",),
    where=("checksum_of", "read_weights"),
    cause="paused_memory_read",
)


def checksum_of(tensor: torch.Tensor) -> float:
    return float(tensor.sum())


def run(job: Job) -> None:
    weights = PausedTensor(1 << 20)
    pauses = job.rank == 1 and not job.healthy
    if pauses:
        weights.pause()
        job.release_later(weights.resume)
    with weight_sync():
        phase("read_weights")
        job.ready()
        checksum_of(weights.tensor)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
