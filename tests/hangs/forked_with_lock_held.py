"""Rank 1 forks a worker while another of its threads holds a lock: the worker waits for ever."""

import os
import threading

import torch.distributed as dist
from _forking import die_with_parent
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 1",),
    where=("read_from_worker", "pack_in_worker"),
    cause="lock_deadlock",
    releasable=False,
)

CACHE_LOCK = threading.Lock()


def hold_lock(held: threading.Event, done: threading.Event) -> None:
    with CACHE_LOCK:
        held.set()
        done.wait()


def pack_in_worker(write_fd: int) -> None:
    with CACHE_LOCK:
        os.write(write_fd, b"packed")


def read_from_worker(read_fd: int) -> bytes:
    return os.read(read_fd, 10)


def pack(locked: bool) -> None:
    held, done = threading.Event(), threading.Event()
    if locked:
        holder = threading.Thread(target=hold_lock, args=(held, done), name="cache", daemon=True)
        holder.start()
        held.wait()
    read_fd, write_fd = os.pipe()
    worker_pid = os.fork()
    if worker_pid == 0:
        die_with_parent()
        try:
            pack_in_worker(write_fd)
        finally:
            os._exit(0)
    done.set()
    read_from_worker(read_fd)
    os.waitpid(worker_pid, 0)


def run(job: Job) -> None:
    with weight_sync():
        phase("read_weights")
        job.ready()
        if job.rank == 1:
            pack(locked=not job.healthy)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
