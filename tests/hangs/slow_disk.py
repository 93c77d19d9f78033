"""Rank 1 writes its weights to a slow disk, the others wait: slow, not hung."""

import os
import threading
import time
from pathlib import Path

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="slow",
    culprits=("rank 1",),
    where=("save_shard",),
    cause="slow_not_hung",
)

_BLOCK = 1 << 16
_SLOW_BLOCKS, _FAST_BLOCKS = 400, 4


def spin_disk(path: Path, job: Job) -> None:
    """Stand in for the disk: takes a block from the pipe now and then."""
    with path.open("rb", buffering=0) as disk:
        while disk.read(_BLOCK):
            if not job.healthy and not job.is_released():
                time.sleep(0.1)


def save_shard(path: Path, num_blocks: int) -> None:
    with path.open("wb", buffering=0) as shard:
        for _ in range(num_blocks):
            shard.write(bytes(_BLOCK))


def run(job: Job) -> None:
    path = job.folder / "shard.bin"
    if job.rank == 1:
        os.mkfifo(path)
        disk = threading.Thread(target=spin_disk, args=(path, job), name="disk", daemon=True)
        disk.start()
    with weight_sync():
        phase("offload_to_disk")
        job.ready()
        if job.rank == 1:
            save_shard(path, _FAST_BLOCKS if job.healthy else _SLOW_BLOCKS)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
