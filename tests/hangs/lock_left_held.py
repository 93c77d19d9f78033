"""An earlier error on rank 1 left the engine lock held; the next sync waits for it for ever."""

import threading

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 1",),
    where=("acquire_engine_lock",),
    cause="lock_deadlock",
)

ENGINE_LOCK = threading.Lock()


def acquire_engine_lock() -> None:
    ENGINE_LOCK.acquire()


def send_bucket(fails: bool) -> None:
    acquire_engine_lock()
    if fails:
        raise ConnectionError("engine closed the connection")
    ENGINE_LOCK.release()


def run(job: Job) -> None:
    try:
        send_bucket(fails=job.rank == 1 and not job.healthy)
    except ConnectionError:
        job.release_later(ENGINE_LOCK.release)
    with weight_sync():
        phase("send_chunk")
        job.ready()
        send_bucket(fails=False)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
