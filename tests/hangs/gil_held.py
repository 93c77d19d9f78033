"""Rank 1 sits in C code that never lets go of the GIL: no Python thread of it runs."""

import ctypes
import json
import os
import signal

import torch.distributed as dist
from _job import Expected, Job, Launcher, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 1",),
    where=("pack_bucket",),
    cause="gil_held",
)


class GilLauncher(Launcher):
    """Interrupts the C call when the job is released."""

    def on_release(self) -> None:
        pids = json.loads((self.folder / "job.json").read_text())
        os.kill(pids["rank 1"], signal.SIGUSR2)


def pack_bucket() -> None:
    # `PyDLL` keeps the GIL for the length of the call, as a careless extension does.
    ctypes.PyDLL(None).sleep(1_000_000)


def run(job: Job) -> None:
    signal.signal(signal.SIGUSR2, lambda *_: None)
    with weight_sync():
        phase("read_weights")
        job.ready()
        if job.rank == 1 and not job.healthy:
            pack_bucket()
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED, GilLauncher)
