"""The stacks of all threads: by py-spy, else by whatever is left.

Where py-spy is missing or refused, a process can still read itself, and one that holds its own
GIL has left what faulthandler's timer wrote. The gap says which was used, and why.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from watchdog.capture import bounded, in_process, py_spy, traceback_file
from watchdog.capture.target import Part, Target
from watchdog.evidence import Gap, StackSample, ThreadStack

NAME = "python stacks"

# Those who look are no part of what is seen: they would make every sample differ.
_OWN_THREADS = ("weight-sync-capture", "weight-sync-watchdog-")
_OWN_FILES = str(Path(__file__).absolute().parents[1]) + os.sep


def collect(target: Target) -> Part:
    """One sample of one process; a gap wherever it is not py-spy's."""
    return part_of(target, py_spy.dump(target.pid))


def stacks(
    pids: Sequence[int], *, native: bool = False, timeout_s: float = 4.0, at_once: int = 4
) -> dict[int, StackSample | Gap]:
    """Stacks of several processes by py-spy, a few at a time.

    Args:
        pids: Processes of this host. May be this one.
        native: With C and C++ frames; stops each process for about a second.
        timeout_s: For each process (s).
        at_once: How many py-spys run together.
    """

    def job(pid: int) -> StackSample | Gap:
        outcome = py_spy.dump(pid, native=native, timeout_s=timeout_s)
        return outcome if isinstance(outcome, Gap) else _without_own(outcome)

    rounds = -(-len(pids) // at_once)
    outcomes = bounded.results(
        {pid: lambda pid=pid: job(pid) for pid in pids},  # type: ignore[misc]
        timeout_s=rounds * timeout_s + 1.0,
        at_once=at_once,
    )
    return {
        pid: Gap(f"stacks of pid {pid}", str(outcome))
        if isinstance(outcome, Exception)
        else outcome
        for pid, outcome in outcomes.items()
    }


def part_of(target: Target, outcome: StackSample | Gap) -> Part:
    """py-spy's sample as it is; for a gap, the next best with the gap beside it."""
    if isinstance(outcome, StackSample):
        return Part(stacks=(_without_own(outcome),))
    gap = replace(outcome, what=f"stacks of {target} by py-spy")
    instead, whence = _next_best(target)
    if instead is None:
        return Part(gaps=(gap,))
    return Part(
        stacks=(_without_own(instead),),
        gaps=(replace(gap, why=f"{gap.why}; used instead: {whence}"),),
    )


def _next_best(target: Target) -> tuple[StackSample | None, str]:
    if target.is_self:
        return in_process.sample(), "the process's own view, Python frames only"
    if target.traceback_file is not None:
        try:
            written = traceback_file.sample(target.traceback_file)
        except OSError:
            written = None
        return written, "what faulthandler's timer wrote, Python frames only"
    return None, ""


def _without_own(sample: StackSample) -> StackSample:
    return replace(sample, threads=tuple(t for t in sample.threads if not _is_own(t)))


def _is_own(thread: ThreadStack) -> bool:
    if thread.name:
        return thread.name.startswith(_OWN_THREADS)
    # Of one that is being started or about to end nobody can read the name.
    frames = (f for f in reversed(thread.frames) if not f.native)
    first = next((f for f in frames if os.path.basename(f.file) != "threading.py"), None)
    return first is not None and first.file.startswith(_OWN_FILES)
