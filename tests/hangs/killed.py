"""Rank 1 is killed by signal 9 while the others wait for its key in the store."""

import os
import signal

from _job import Expected, Job, main, meet_in_store

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="crashed",
    culprits=("rank 1",),
    where=("signal 9", "SIGKILL", "killed", "read_weights"),
    cause="oom_or_killed",
    releasable=False,
)


def run(job: Job) -> None:
    with weight_sync():
        phase("read_weights")
        job.ready()
        if job.rank == 1 and not job.healthy:
            os.kill(os.getpid(), signal.SIGKILL)
        meet_in_store(job, "killed")


if __name__ == "__main__":
    main(run, EXPECTED)
