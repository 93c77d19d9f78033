"""An error left the part that a lock protects, and nobody gave the lock back.

What hangs
    Every rank that wants the lock, the one that failed included once it tries again; the others in
    the barrier behind them.

How it shows
    A traceback passes through the function in which ranks now poll; the lock's actor is idle, so
    nobody is in the protected part. The error itself is often an engine's 4xx or 5xx.

What to do
    Release the lock in `finally`; give the poll a time limit. Then look for the error's own
    reason, which the lock has hidden.

Not to be confused with
    A lock whose holder works; lock_never_released, where no error is known.

Source
    https://github.com/THUDM/slime/pull/2331
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.evidence import LogEvent, Process
from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation
from watchdog.verdict import verdict_of
from watchdog.verdict.errors import fatal_error
from watchdog.waits.patterns import WaitKind

CAUSE_CLASS: Final = "lock_deadlock"

_POLLING: tuple[WaitKind, ...] = ("unknown", "lock", "sleep", "rpc")


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    event = fatal_error(situation)
    if event is None or verdict_of(situation).state not in ("hung", "crashed"):
        return None
    passed = {line.split(" (", 1)[0] for line in event.fields.get("frames", "").splitlines()}
    places = [p for p in situation.doing(*_POLLING) if _innermost(situation, p) in passed]
    by_place: dict[str, list[Process]] = {}
    for process in places:
        by_place.setdefault(situation.wait(process).site, []).append(process)
    polling = max(by_place.values(), key=len, default=[])
    lock = _lock(situation, polling)
    if len(polling) < 2 or not lock:
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        f"{len(polling)} ranks poll for a lock that an error left taken.",
        [quoted(event), *(seen(situation, p) for p in polling[:3]), lock],
    )


def _innermost(situation: Situation, process: Process) -> str:
    path = situation.wait(process).path
    return path[0].function if path else ""


def _lock(situation: Situation, polling: list[Process]) -> str:
    """What shows that it is a lock they poll for, and that nobody is at it; "" if nothing."""
    for process in situation.evidence.processes:
        if re.search(r"\bray::\w*Lock\b", process.command):
            wait = situation.wait(process)
            return f"{process.command}: {wait.operation}" if wait.kind == "idle" else ""
    if polling and all(situation.wait(p).kind == "lock" for p in polling):
        return "all of them are in an acquire"
    said: tuple[LogEvent, ...] = situation.log(r"lock not held|acquire\w* .{0,60}(False|failed)")
    return quoted(said[0]) if said else ""
