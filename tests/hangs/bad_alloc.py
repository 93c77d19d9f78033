"""Rank 2 is refused memory inside C++, which nobody there expects: it aborts, the others wait.

The launcher does not reap it, so a zombie stays, as under a launcher that is busy elsewhere.
"""

import ctypes

from _job import Expected, Job, UnreapingLauncher, main, meet_in_store
from _memory_limit import ROOM_BYTES, limit_memory

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="crashed",
    culprits=("rank 2",),
    where=("SIGABRT",),
    releasable=False,
)


def stage_on_host() -> None:
    # `operator new(size_t)`: throws through frames that catch nothing.
    ctypes.CDLL("libstdc++.so.6")._Znwm(ctypes.c_size_t(4 * ROOM_BYTES))


def run(job: Job) -> None:
    with weight_sync():
        phase("stage_weights")
        job.ready()
        if job.rank == 2 and not job.healthy:
            limit_memory()
            stage_on_host()
        meet_in_store(job, "bad_alloc")


if __name__ == "__main__":
    main(run, EXPECTED, UnreapingLauncher)
