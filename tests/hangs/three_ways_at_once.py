"""Of eight ranks, one is stopped, one holds the GIL and one was killed; five wait for them."""

import os
import signal

from _job import Expected, Job, main, meet_in_store
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
    with weight_sync():
        phase("read_weights")
        job.ready()
        if not job.healthy:
            fail(job.rank)
        meet_in_store(job, "three_ways_at_once")


def fail(rank: int) -> None:
    if rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    elif rank == 4:
        pack_bucket()
    elif rank == 6:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(run, EXPECTED)
