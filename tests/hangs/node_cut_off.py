"""The link to the second node goes down while all four ranks are on their way to a barrier."""

import time

import torch.distributed as dist
from _job import Expected, Job, main
from _nodes import NodesLauncher

from watchdog.section import phase, weight_sync

EXPECTED = Expected(
    state="hung",
    culprits=("rank 2", "rank 3"),
    where=("its host is silent",),
    cause="other",
    ranks=4,
    releasable=False,
    needs=("netns",),
)


class CutLauncher(NodesLauncher):
    """Cuts the link once all ranks are in the sync."""

    def on_ready(self) -> None:
        if not self.healthy:
            self.link.cut()
            (self.folder / "cut").touch()


def run(job: Job) -> None:
    if not job.healthy:
        # Long enough in the run for each node to have said where its ranks are.
        time.sleep(4)
    with weight_sync():
        phase("barrier:entry")
        job.ready()
        if not job.healthy:
            job.wait_for_file("cut")
        dist.barrier()
        phase("barrier:exit")
        dist.barrier()


if __name__ == "__main__":
    main(run, EXPECTED, CutLauncher)
