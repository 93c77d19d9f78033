"""Evidence that fits into a number of bytes: the raw goes first, what names somebody last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from watchdog.evidence import Evidence, Gap, Process, StackSample
from watchdog.serialization import evidence_to_json


def fitting_json(evidence: Evidence, max_bytes: int) -> str:
    """Evidence as JSON of at most so many bytes.

    What was left out is a gap in it. Where even the last step does not suffice, the result is
    larger than asked for: the processes themselves are never dropped.
    """
    text = evidence_to_json(evidence)
    if len(text.encode()) <= max_bytes:
        return text
    dropped: list[str] = []
    for name, step in _STEPS:
        evidence = replace(evidence, processes=tuple(map(step, evidence.processes)))
        dropped.append(name)
        gap = Gap(", ".join(dropped), f"more than {max_bytes} bytes of evidence")
        text = evidence_to_json(replace(evidence, gaps=(*evidence.gaps, gap)))
        if len(text.encode()) <= max_bytes:
            break
    return text


def _each_stack(change: Callable[[StackSample], StackSample]) -> Callable[[Process], Process]:
    return lambda process: replace(process, stacks=tuple(map(change, process.stacks)))


def _without_locals(sample: StackSample) -> StackSample:
    return replace(
        sample,
        threads=tuple(
            replace(thread, frames=tuple(replace(frame, locals={}) for frame in thread.frames))
            for thread in sample.threads
        ),
    )


def _shorter(max_frames: int, max_threads: int) -> Callable[[StackSample], StackSample]:
    def shorter(sample: StackSample) -> StackSample:
        threads = sample.threads[:max_threads]
        return replace(
            sample,
            threads=tuple(replace(each, frames=each.frames[:max_frames]) for each in threads),
        )

    return shorter


def _short_history(process: Process) -> Process:
    place = process.position
    if place is None:
        return process
    return replace(process, position=replace(place, history=place.history[-20:]))


_STEPS: tuple[tuple[str, Callable[[Process], Process]], ...] = (
    ("local variables", _each_stack(_without_locals)),
    ("marks before the last 20", _short_history),
    ("frames beyond 60 a thread", _each_stack(_shorter(60, 1000))),
    ("environment and sockets", lambda process: replace(process, environment={}, sockets=())),
    ("collectives before the last 20", lambda p: replace(p, collectives=p.collectives[-20:])),
    ("threads beyond 20 and frames beyond 30", _each_stack(_shorter(30, 20))),
    ("all but the last stacks", lambda process: replace(process, stacks=process.stacks[-1:])),
    ("all but 3 threads and 10 frames", _each_stack(_shorter(10, 3))),
)
