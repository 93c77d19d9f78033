"""Two threads of rank 1 take two locks in opposite order."""

import threading

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 1",),
    where=("offload_then_send", "send_then_offload"),
    cause="lock_deadlock",
    releasable=False,
)

OFFLOAD_LOCK, SEND_LOCK = threading.Lock(), threading.Lock()


def offload_then_send(met: threading.Barrier) -> None:
    with OFFLOAD_LOCK:
        met.wait()
        with SEND_LOCK:
            pass


def send_then_offload(met: threading.Barrier) -> None:
    with SEND_LOCK:
        met.wait()
        with OFFLOAD_LOCK:
            pass


def run(job: Job) -> None:
    deadlocks = job.rank == 1 and not job.healthy
    met = threading.Barrier(2 if deadlocks else 1)
    with weight_sync():
        phase("send_chunk")
        job.ready()
        if deadlocks:
            threading.Thread(
                target=offload_then_send, args=(met,), name="offload", daemon=True
            ).start()
        send_then_offload(met)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
