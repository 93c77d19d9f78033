"""What can go wrong around an incident: drawn from a seed, and done in earnest."""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from _scheduled_job import POLL_S, Job
from small_disk import SmallDisk
from zygote import ENDS_THREAD, HOLD_THE_GIL

WAYS = ("wait_in_barrier", "hold_the_gil", "never_arrives")
_FIRST_SAMPLE_AFTER_S = 0.6
_STALL_AFTER_S = 1.0
# Whatever is waited for, a fault strikes at last.
_STRIKES_WITHIN_S = 10.0


def _after(seconds: float) -> Callable[[Job], bool]:
    return lambda job: time.monotonic() > job.began_s + seconds


MOMENTS: dict[str, Callable[[Job], bool]] = {
    "at once": lambda job: True,
    "first sample": _after(_FIRST_SAMPLE_AFTER_S),
    "stall": _after(_STALL_AFTER_S),
    "evidence written": lambda job: job.has("raw/rank-*.json"),
    "leader locked": lambda job: job.has("leader-*.lock"),
    "evidence.json": lambda job: job.has("evidence.json"),
    "report being written": lambda job: job.has("report.md"),
    "report written": lambda job: job.has("report.json"),
}


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        name: Key of `OF_A_RANK`, `OF_ANOTHER` or `OF_THE_DISK`.
        moment: Key of `MOMENTS`.
        delay_s: How long after that moment.
        rank: Which rank, or a rank of the node on which it happens.
    """

    name: str
    moment: str
    delay_s: float
    rank: int

    def __str__(self) -> str:
        whose = "" if self.name in OF_A_RANK else " on the node of rank"
        return f"{self.name}{whose} {self.rank} at “{self.moment}” + {self.delay_s:.2f} s"

    @property
    def is_early(self) -> bool:
        """Whether it comes before the first sample."""
        return self.moment == "at once" and self.delay_s <= 0.1

    def strike(self, job: Job, disk: SmallDisk) -> None:
        """Wait for the moment, and do it."""
        until_s = time.monotonic() + _STRIKES_WITHIN_S
        is_there = MOMENTS[self.moment]
        while not (is_there(job) or job.reports()) and time.monotonic() < until_s:
            threading.Event().wait(POLL_S / 2)
        threading.Event().wait(self.delay_s)
        if self.name in OF_A_RANK:
            job.strike(job.pids[self.rank], OF_A_RANK[self.name])
        elif self.name in OF_ANOTHER:
            whose, number = OF_ANOTHER[self.name]
            if pid := whose(job, self.rank):
                job.strike(pid, number)
        else:
            OF_THE_DISK[self.name](job, disk, self.rank)


@dataclass(frozen=True)
class Schedule:
    """A job and what goes wrong with it.

    Attributes:
        seed: What it was drawn from.
        ways: How each rank hangs.
        nodes: Where each rank is.
        native: `MILES_WATCHDOG_NATIVE`; reading native frames costs most of the CPU time.
        faults: In this order.
        has_no_other_disk: Whether the folder for temporary files, where a report goes that the
            run folder refuses, lies on the same disk.
    """

    seed: int
    ways: tuple[str, ...]
    nodes: tuple[int, ...]
    native: str
    faults: tuple[Fault, ...]
    has_no_other_disk: bool

    def __str__(self) -> str:
        disk = "; no other disk" if self.has_no_other_disk else ""
        faults = "; ".join(map(str, self.faults))
        ranks = ", ".join(f"{w} ({n})" for n, w in zip(self.nodes, self.ways, strict=True))
        return f"seed-{self.seed}: {ranks}; {faults}{disk}"

    def early_fate(self, rank: int) -> str:
        """What a report calls a rank that was struck before there was anything to see, else ""."""
        first = itertools.takewhile(lambda fault: fault.is_early, self.faults)
        early = [fault.name for fault in first if fault.rank == rank]
        fates = {"kill rank": "dead", "stop rank": "stopped"}
        return next((fate for name, fate in fates.items() if name in early), "")

    def mutes(self, rank: int) -> bool:
        """Whether no thread of this rank's watchdog runs in the end, though the process does."""
        is_held = self._has(rank, ("hold the GIL of rank",))
        return self.ways[rank] == "hold_the_gil" or is_held

    def ends(self, rank: int, threads: Collection[str]) -> bool:
        """Whether one of these threads of its watchdog is ended."""
        return self._has(rank, {f"end {name} thread of rank" for name in threads})

    def _has(self, rank: int, names: Collection[str]) -> bool:
        return any(fault.rank == rank and fault.name in names for fault in self.faults)


def schedule(seed: int, *, num_nodes: int = 1) -> Schedule:
    """The schedule of a seed, always the same.

    Args:
        seed: Any number.
        num_nodes: With one, two or three ranks in all; with more, one or two each.
    """
    dice = random.Random(f"{num_nodes}:{seed}")
    nodes = dice.choice(((0, 0), (0, 0, 0), (0, 0, 0)))
    if num_nodes > 1:
        nodes = tuple(sorted([*range(num_nodes), *dice.sample(range(num_nodes), 1)]))
    ways = dice.choices(WAYS, (6, 1, 2), k=len(nodes))
    # Somebody has to be in the sync, or nothing stalls.
    ways[dice.randrange(len(nodes))] = dice.choice(("wait_in_barrier",) * 4 + ("hold_the_gil",))
    num_faults = dice.choice((1, 1, 2, 2, 3))
    faults = tuple(_drawn_fault(dice, len(nodes), num_nodes) for _ in range(num_faults))
    is_full = any(fault.name.startswith("disk") for fault in faults)
    return Schedule(
        seed=seed,
        ways=tuple(ways),
        nodes=nodes,
        native="auto" if num_nodes == 1 and dice.random() < 0.2 else "0",
        faults=faults,
        has_no_other_disk=is_full and dice.random() < 0.3,
    )


def _drawn_fault(dice: random.Random, num_ranks: int, num_nodes: int) -> Fault:
    names = [*OF_A_RANK, *OF_ANOTHER, *OF_THE_DISK]
    rank = dice.randrange(num_ranks)
    if num_nodes > 1:
        # Nodes meet in the store that rank 0 holds.
        names += 2 * ["kill rank", "stop rank"]
        rank = dice.choice((0, rank))
    return Fault(
        name=dice.choice(names),
        moment=dice.choice(tuple(MOMENTS)),
        delay_s=dice.choice((0.0, 0.02, 0.1, 0.5, dice.uniform(0.0, 4.0))),
        rank=rank,
    )


OF_A_RANK: dict[str, int] = {
    "kill rank": signal.SIGKILL,
    "stop rank": signal.SIGSTOP,
    "hold the GIL of rank": HOLD_THE_GIL,
    **{f"end {name} thread of rank": number for name, (number, _) in ENDS_THREAD.items()},
}
OF_ANOTHER: dict[str, tuple[Callable[[Job, int], int | None], int]] = {
    "kill sentinel": (Job.sentinel, signal.SIGKILL),
    "stop sentinel": (Job.sentinel, signal.SIGSTOP),
    "kill leader": (Job.leader, signal.SIGKILL),
    "stop leader": (Job.leader, signal.SIGSTOP),
}


def _lose(job: Job, disk: SmallDisk, rank: int) -> None:
    """Move the folder away: what is in it is kept for the test, and gone for the job."""
    run = job.run_folder(rank)
    lost = disk.folder / "lost"
    with contextlib.suppress(OSError):
        lost.mkdir(exist_ok=True)
        (run / "incidents").rename(lost / f"{run.name}-{len(list(lost.iterdir()))}")


def _replace(job: Job, disk: SmallDisk, rank: int) -> None:
    """A file in its place: whatever is written from now on is refused."""
    for _ in range(20):
        _lose(job, disk, rank)
        with contextlib.suppress(OSError):
            (job.run_folder(rank) / "incidents").touch(exist_ok=False)
            return


OF_THE_DISK: dict[str, Callable[[Job, SmallDisk, int], None]] = {
    "disk full": lambda job, disk, rank: disk.fill(),
    "disk read-only": lambda job, disk, rank: disk.refuse(),
    "incidents lost": _lose,
    "incidents replaced by a file": _replace,
}
