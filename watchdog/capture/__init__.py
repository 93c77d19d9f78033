"""Live evidence of a process: one module a source, and the table of them.

A source never takes another one down: what it raises, and what it does not finish in time,
becomes a gap in the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from watchdog.capture import (
    bounded,
    environment,
    flags,
    kernel,
    memory,
    process_state,
    python_stacks,
    sockets,
    versions,
)
from watchdog.capture.target import Part, Source, Target, combined
from watchdog.evidence import Gap

SOURCES: tuple[Source, ...] = (
    python_stacks,
    process_state,
    memory,
    flags,
    environment,
    sockets,
    kernel,
    versions,
)
"""All of them, the ones that matter most first."""

SAMPLE_SOURCES: tuple[Source, ...] = (python_stacks, process_state)
"""What is read twice, to see whether anything moves. Cheap."""


def capture(
    targets: Sequence[Target],
    sources: Sequence[Source] = SOURCES,
    *,
    timeout_s: float = 8.0,
    at_once: int = 4,
) -> dict[int, Part]:
    """Read all sources of some processes, a few at a time. Never raises.

    Args:
        targets: Processes of this host, this one or others, running or not.
        sources: Entries of `SOURCES`.
        timeout_s: For all of it together (s). What is not there by then becomes a gap.
        at_once: How many sources are read together.

    Returns:
        A part a target, by pid.
    """
    # Source by source, so that a process whose every file blocks costs the others little.
    jobs: dict[tuple[int, str], Callable[[], Part]] = {
        (target.pid, source.NAME): partial(source.collect, target)
        for source in sources
        for target in targets
    }
    outcomes = bounded.results(jobs, timeout_s=timeout_s, at_once=at_once)
    return {
        target.pid: combined(
            _part(outcomes[target.pid, source.NAME], source, target) for source in sources
        )
        for target in targets
    }


def _part(outcome: Part | Exception, source: Source, target: Target) -> Part:
    if isinstance(outcome, Part):
        return outcome
    why = str(outcome) or type(outcome).__name__
    if not isinstance(outcome, (OSError, TimeoutError)):
        why = f"{type(outcome).__name__}: {why}"
    return Part(gaps=(Gap(f"{source.NAME} of {target}", why),))
