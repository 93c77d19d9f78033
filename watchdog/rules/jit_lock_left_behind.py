"""A lock file of a compiler cache was left behind, or lies on a file system without locks.

What hangs
    The process that wants to load the compiled module, polling without a time limit; everybody
    who waits for it.

How it shows
    Frames in `file_baton.py`, `filelock` or a JIT loader; CPU near 0; the cache is on NFS or the
    lock is older than every process.

What to do
    Delete the lock file; put the cache on local storage (TORCH_EXTENSIONS_DIR, TRITON_CACHE_DIR,
    FLASHINFER_WORKSPACE_BASE).

Not to be confused with
    A compilation that is running, whose CPU time grows.

Source
    https://github.com/flashinfer-ai/flashinfer/pull/993
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted, refuted, seen
from watchdog.situation import Situation
from watchdog.verdict.file_locks import stale_lock

CAUSE_CLASS: Final = "lock_deadlock"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    polling = situation.at(r"file_baton|filelock|FileBaton", among=situation.evidence.processes)
    stuck = [
        p
        for p in polling
        if situation.wait(p).kind in ("lock", "sleep", "file_wait")
        and situation.moving(p) is not True
    ]
    if not stuck:
        return None
    compiling = situation.doing("slow_work", among=situation.evidence.processes)
    if compiling:
        return refuted(__name__, CAUSE_CLASS, "another process compiles and holds the lock")
    stale = stale_lock(situation)
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        "A process polls a lock file of a compiler cache.",
        [*([quoted(stale)] if stale else []), *(seen(situation, p) for p in stuck[:3])],
        culprits=stuck,
    )
