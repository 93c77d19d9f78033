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
    stuck = [
        p
        for p in situation.doing("lock", among=situation.evidence.processes)
        if situation.moving(p) is not True
        and not situation.wait(p).passes(r"file_baton|filelock")
        and not _waits_for_news(p)
    ]
    if not stuck or not peers.hung(situation):
        return None
    accused = verdict_of(situation).culprits
    named = [p for p in stuck if any(p.key == c.process or p.pid == c.pid for c in accused)]
    forked = [p for p in stuck if p.role == "other"]
    if not named and not (forked and _waits_for_child(situation)):
        return None
    chosen = named or forked
    still = (
        any(situation.moving(p) is False for p in chosen) or situation.evidence.stall is not None
    )
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if still else "possible",
        f"{chosen[0].key} waits for a lock that nobody gives back.",
        [*(seen(situation, p) for p in chosen[:3]), *_threads(chosen[0])],
        culprits=chosen,
    )


def _waits_for_news(process: Process) -> bool:
    """Whether a request of an engine's server waits for something to happen: that is no lock."""
    if process.role != "engine" or not process.stacks:
        return False
    # Native frames may lie above.
    frames = [frame for thread in process.stacks[-1].threads for frame in thread.frames[:16]]
    return any(
        frame.function in ("wait", "wait_for") and frame.file.endswith("threading.py")
        for frame in frames
    )


def _waits_for_child(situation: Situation) -> bool:
    """Whether an accused rank reads a pipe or waits for a child: it waits for the fork."""
    return bool(
        situation.at(
            r"^_*(read|waitpid|wait4|recv)$|subprocess|from_worker|popen|^data loader$",
            among=peers.accused(situation),
        )
    )


def _threads(process: Process) -> list[str]:
    sample = process.stacks[-1] if process.stacks else None
    waits = [w for w in thread_waits(sample) if w.kind == "lock" and w.path] if sample else []
    return (
        [f"thread {w.thread.name} waits in {w.path[0].function}" for w in waits[:4]]
        if len(waits) > 1
        else []
    )
