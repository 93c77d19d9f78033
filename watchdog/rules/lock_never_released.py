"""A rank waits for a lock whose holder is gone, has failed, or waits for it in turn.

What hangs
    The rank that wants the lock; the others in the collective behind it.

How it shows
    The stack ends in an acquire (or the native frames of one), nobody is in the part that the
    lock protects, or two threads of one process each hold what the other wants. An earlier
    exception that skipped the release is the usual story; a fork while another thread held the
    lock is the other.

What to do
    Release in `finally` or by `with`; one order of locks in all threads; start processes by
    spawn, or before threads.

Not to be confused with
    A lock that is polled while its holder works; jit_lock_left_behind.

Source
    https://github.com/radixark/miles/pull/1367
    https://github.com/verl-project/verl/pull/7291
"""

from __future__ import annotations

from typing import Final

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation
from watchdog.verdict import (
    verdict_of,
)
from watchdog.waits import thread_waits

CAUSE_CLASS: Final = "lock_deadlock"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    every = (*situation.trainers, *situation.engines)
    stuck = [p for p in situation.doing("lock", among=every) if situation.moving(p) is not True]
    if (
        not stuck
        or not peers.hung(situation)
        or situation.at(r"file_baton|filelock", among=tuple(stuck))
    ):
        return None
    accused = {c.process for c in verdict_of(situation).culprits}
    named = [
        p
        for p in stuck
        if p.key in accused or any(c.pid == p.pid for c in verdict_of(situation).culprits)
    ]
    if not named:
        return None
    still = [
        p for p in named if situation.moving(p) is False or situation.evidence.stall is not None
    ]
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if still else "possible",
        f"{named[0].key} waits for a lock that nobody gives back.",
        [*(seen(situation, p) for p in named[:3]), *_threads(named[0])],
        culprits=named,
    )


def _threads(process: Process) -> list[str]:
    sample = process.stacks[-1] if process.stacks else None
    waits = [w for w in thread_waits(sample) if w.kind == "lock" and w.path] if sample else []
    return (
        [f"thread {w.thread.name} waits in {w.path[0].function}" for w in waits[:4]]
        if len(waits) > 1
        else []
    )
