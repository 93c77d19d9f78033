"""Native frames of those that the verdict names: where in C or C++ they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from watchdog.evidence import Evidence, Gap, Process, StackSample
from watchdog.findings import Verdict

ReadNative = Callable[[Sequence[int]], dict[int, StackSample | Gap]]

_MAX_SUSPECTS = 4


def with_native_frames(
    evidence: Evidence, verdict: Verdict, *, wanted: str, host: str, read: ReadNative
) -> Evidence | None:
    """The evidence with one more sample of each suspect.

    Args:
        evidence: Of the whole job.
        verdict: Whose culprits are the suspects.
        wanted: `auto` for the suspects, `1` for every process, `0` for none.
        host: Only processes of this host can be read.
        read: Native stacks by pid.

    Returns:
        `None` where there is nobody to look at.
    """
    suspects = {culprit.process for culprit in verdict.culprits}
    chosen = [
        process
        for process in evidence.processes
        if process.host == host
        and process.pid is not None
        and process.status in ("running", "uninterruptible")
        and (wanted == "1" or (wanted == "auto" and process.key in suspects))
    ]
    if wanted == "auto":
        chosen = chosen[:_MAX_SUSPECTS]
    if not chosen:
        return None
    found = read([process.pid for process in chosen if process.pid is not None])
    changed = {process.key: _with(process, found[process.pid or 0]) for process in chosen}
    processes = tuple(changed.get(process.key, process) for process in evidence.processes)
    return replace(evidence, processes=processes)


def _with(process: Process, outcome: StackSample | Gap) -> Process:
    if isinstance(outcome, StackSample):
        return replace(process, stacks=(*process.stacks, outcome))
    gap = replace(outcome, what=f"native stacks of {process.key}")
    return replace(process, gaps=(*process.gaps, gap))
