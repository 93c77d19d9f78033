"""A rank reads or writes files, and the storage is slow.

What hangs
    The other ranks, in the barrier behind the load or save.

How it shows
    Frames in a checkpoint reader or writer, state D with a wait channel of the page cache or NFS,
    bytes that grow between two looks (or stand still while the server does not answer); the path
    is a network mount.

What to do
    Copy to local storage first; give that group a longer time-out of its own.

Not to be confused with
    save_while_offloaded, whose copy to the host never ends; a wait for a file that somebody else
    writes.

Source
    https://github.com/vllm-project/vime/pull/53
    https://github.com/ServiceNow/Fast-LLM/pull/543
"""

from __future__ import annotations

from typing import Final

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding, quotes, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "storage_slow"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    busy = situation.doing("file_io")
    if not busy or crash.crashed(situation):
        return None
    moves = [p for p in busy if situation.moving(p)]
    blocked = [p for p in busy if p.status == "uninterruptible" or _in_disk_wait(p)]
    mount = situation.log(r"nfs|lustre|fuse|not responding|ceph|beegfs")
    apart = len(busy) < len(situation.trainers)
    if not apart or not (moves or blocked or mount):
        return finding(
            __name__,
            CAUSE_CLASS,
            "possible",
            "A rank is in file input or output.",
            [seen(situation, p) for p in busy[:2]],
        )
    chosen = moves or blocked or list(busy)
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed" if (moves and (blocked or mount)) else "likely",
        "The rank that the others wait for reads or writes files.",
        [
            *(f"{seen(situation, p)}; {situation.movements[p.key].how}" for p in chosen[:3]),
            *quotes(mount, 2),
        ],
        culprits=chosen,
    )


def _in_disk_wait(process: Process) -> bool:
    return bool(process.activity) and any(t.state == "D" for t in process.activity[-1].threads)
