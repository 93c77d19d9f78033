"""Rank 2 is refused memory inside C++, which nobody there expects: it aborts, the others wait.

The launcher does not reap it, so a zombie stays, as under a launcher that is busy elsewhere.
"""

import ctypes
import datetime

import torch.distributed as dist
from _job import Expected, Job, Launcher, main
from _memory_limit import ROOM_BYTES, limit_memory

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="crashed",
    culprits=("rank 2",),
    where=("SIGABRT",),
    releasable=False,
)


class UnreapingLauncher(Launcher):
    """Leaves the zombie."""

    reaps = False


def stage_on_host() -> None:
    # `operator new(size_t)`: throws through frames that catch nothing.
    ctypes.CDLL("libstdc++.so.6")._Znwm(ctypes.c_size_t(4 * ROOM_BYTES))


def run(job: Job) -> None:
    store = dist.distributed_c10d._get_default_store()
    with weight_sync():
        phase("stage_weights")
        job.ready()
        if job.rank == 2 and not job.healthy:
            limit_memory()
            stage_on_host()
        store.set(f"allocated/{job.rank}", "done")
        phase("wait_for_stagers")
        keys = [f"allocated/{rank}" for rank in range(job.world_size)]
        store.wait(keys, datetime.timedelta(minutes=30))


if __name__ == "__main__":
    main(run, EXPECTED, UnreapingLauncher)
