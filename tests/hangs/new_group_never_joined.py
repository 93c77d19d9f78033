"""Ranks 0 and 1 build a group; rank 2 never does, so the rendezvous does not end."""

import os

import torch.distributed as dist
from _job import Expected, Job, main

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 2",),
    where=("wake_up",),
    cause="group_rendezvous",
)


def wake_up(job: Job) -> None:
    os.read(job.release_fd, 1)


def run(job: Job) -> None:
    with weight_sync():
        phase("reload_process_groups")
        job.ready()
        if job.rank == 2 and not job.healthy:
            wake_up(job)
        group = dist.new_group(backend="gloo")
        phase("barrier:exit")
        dist.barrier(group)


if __name__ == "__main__":
    main(run, EXPECTED)
