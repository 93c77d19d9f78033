"""Several evidences of one stall into one: by process key, nothing counted twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TypeVar

from watchdog.evidence import ActivitySample, Evidence, Process, StackSample
from watchdog.intake.same_keys import told_apart

T = TypeVar("T")
S = TypeVar("S", StackSample, ActivitySample)


def merged_evidence(evidences: Sequence[Evidence]) -> Evidence:
    """One evidence of all, at least one; earlier ones win where they contradict.

    Processes of the same key become one (`rank 3` of two looks at one job):
    samples and collectives are united, and what one lacks comes from the other. Where two nodes
    gave one key to two processes, the later ones get others. The origin is
    that of the first evidence that a tool of ours wrote.
    """
    first = evidences[0]
    for other in evidences[1:]:
        first = _merged(first, told_apart(other, first))
    return first


def _merged(one: Evidence, other: Evidence) -> Evidence:
    processes = {process.key: process for process in one.processes}
    for process in other.processes:
        known = processes.get(process.key)
        processes[process.key] = _merged_process(known, process) if known else process
    flags = {flag.name: flag for flag in (*other.flags, *one.flags)}
    return replace(
        one,
        processes=tuple(processes.values()),
        world_size=one.world_size if one.world_size is not None else other.world_size,
        framework=one.framework or other.framework,
        collected_at_s=_latest(one.collected_at_s, other.collected_at_s),
        stall=one.stall or other.stall,
        log_events=_united(one.log_events, other.log_events),
        flags=tuple(flags.values()),
        environment={**other.environment, **one.environment},
        versions={**other.versions, **one.versions},
        gaps=_united(one.gaps, other.gaps),
        notes=_united(one.notes, other.notes),
    )


def _merged_process(one: Process, other: Process) -> Process:
    changes: dict[str, object] = {}
    for field in fields(Process):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name in ("stacks", "activity"):
            changes[field.name] = _by_time(_united(mine, theirs))
        elif isinstance(mine, tuple):
            changes[field.name] = _united(mine, theirs)
        elif isinstance(mine, dict):
            changes[field.name] = {**theirs, **mine}
        elif mine in (None, "", "unknown"):
            changes[field.name] = theirs
    return replace(one, **changes)  # type: ignore[arg-type]


def _united(mine: tuple[T, ...], theirs: tuple[T, ...]) -> tuple[T, ...]:
    return mine + tuple(item for item in theirs if item not in mine)


def _by_time(samples: tuple[S, ...]) -> tuple[S, ...]:
    """Samples in the order of their times, as they are where one has none."""
    timed = [(sample.taken_at_s, sample) for sample in samples if sample.taken_at_s is not None]
    if len(timed) < len(samples):
        return samples
    return tuple(sample for _, sample in sorted(timed, key=lambda each: each[0]))


def _latest(mine: float | None, theirs: float | None) -> float | None:
    known = [time for time in (mine, theirs) if time is not None]
    return max(known, default=None)
