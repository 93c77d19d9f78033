"""Rank 1 is killed by signal 9 while the others wait for its key in the store."""

import datetime
import os
import signal

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="crashed",
    culprits=("rank 1",),
    where=("signal 9", "SIGKILL", "killed", "read_weights"),
    cause="oom_or_killed",
    releasable=False,
)


def run(job: Job) -> None:
    store = dist.distributed_c10d._get_default_store()
    with weight_sync():
        phase("read_weights")
        job.ready()
        if job.rank == 1 and not job.healthy:
            os.kill(os.getpid(), signal.SIGKILL)
        store.set(f"killed/read/{job.rank}", "done")
        phase("wait_for_readers")
        keys = [f"killed/read/{rank}" for rank in range(job.world_size)]
        store.wait(keys, datetime.timedelta(minutes=30))


if __name__ == "__main__":
    main(run, EXPECTED)
