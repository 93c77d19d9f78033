"""A thread waits inside C with the GIL in its hand, and no other Python thread can run.

What hangs
    Every Python thread of that process, whatever it was about to do: answers, heartbeats,
    watchdogs. Other processes wait for its answer.

How it shows
    A dump from outside shows `active+gil` on a thread whose innermost frames are a lock, a driver
    call or a system call, and the others in `take_gil`. The heartbeat of the process stands still
    although it is neither stopped nor dead; NCCL may say `watchdog got stuck for 480 seconds`.

What to do
    Release the GIL around the blocking call (the extension that makes it must), or move the
    server or the callback out of the process. Nothing outside can make the thread let go: end the
    process.

Not to be confused with
    paused_memory_read by `tobytes()`, which holds the GIL too, but whose thread the kernel blocks
    in a page fault; cuda_ipc_handle_opened_twice.

Source
    https://github.com/LMCache/LMCache/pull/2823
    https://github.com/pytorch/pytorch/pull/104103
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation
from watchdog.verdict import (
    verdict_of,
)

CAUSE_CLASS: Final = "gil_held"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    members = (*situation.trainers, *situation.engines)
    found = situation.doing("gil_held", among=members)
    if not found:
        others = [p for p in situation.evidence.processes if p not in members]
        found = situation.doing("gil_held", among=tuple(others))
    if not found or verdict_of(situation).state not in ("hung", "crashed"):
        return None
    stuck = [quoted(e) for e in situation.log(r"watchdog got stuck")]
    sure = any(f.native for p in found for f in situation.wait(p).frames[:3]) or bool(stuck)
    silent = [p for p in found if p.position and (p.position.heartbeat_age_s or 0) > 3]
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed" if sure or silent else "likely",
        "A thread keeps the GIL while it waits.",
        [*(seen(situation, p) for p in found), *stuck[:1]],
        culprits=found,
    )
