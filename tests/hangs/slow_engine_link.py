"""Rank 0 sends a large tensor over a slow link: it takes long, and it moves."""

import socket
import threading
import time

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="slow",
    culprits=("rank 0",),
    where=("send_weights",),
    cause="slow_not_hung",
)

_CHUNK = 1 << 16
_SLOW_BYTES, _FAST_BYTES = 400 << 16, 4 << 16


def drain(receiver: socket.socket, job: Job) -> None:
    while receiver.recv(_CHUNK):
        if not job.healthy and not job.is_released():
            time.sleep(0.1)


def send_weights(sender: socket.socket, num_bytes: int) -> None:
    weights = bytes(_CHUNK)
    for _ in range(num_bytes // _CHUNK):
        sender.sendall(weights)


def run(job: Job) -> None:
    sender, receiver = socket.socketpair()
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _CHUNK)
    link = threading.Thread(target=drain, args=(receiver, job), name="slow-link", daemon=True)
    with sender, weight_sync():
        phase("send_chunk")
        job.ready()
        if job.rank == 0:
            link.start()
            send_weights(sender, _FAST_BYTES if job.healthy else _SLOW_BYTES)
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED)
