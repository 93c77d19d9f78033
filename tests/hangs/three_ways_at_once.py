"""Of eight ranks, one is stopped, one holds the GIL and one was killed; five wait for them."""

import datetime
import os
import signal

import torch.distributed as dist
from _job import Expected, Job, main
from gil_held import pack_bucket

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state=("crashed", "hung"),
    culprits=("rank 2", "rank 4", "rank 6"),
    where=("pack_bucket", "read_weights", "stopped", "killed"),
    cause=None,
    ranks=8,
    releasable=False,
)


def run(job: Job) -> None:
    store = dist.distributed_c10d._get_default_store()
    with weight_sync():
        phase("read_weights")
        job.ready()
        if not job.healthy:
            fail(job.rank)
        store.set(f"three_ways/{job.rank}", "done")
        phase("wait_for_readers")
        keys = [f"three_ways/{rank}" for rank in range(job.world_size)]
        store.wait(keys, datetime.timedelta(minutes=30))


def fail(rank: int) -> None:
    if rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    elif rank == 4:
        pack_bucket()
    elif rank == 6:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(run, EXPECTED)
