"""Two nodes call different processes by the same name: `launcher`, `engine 0`, `rank 3`."""

from __future__ import annotations

import re
from dataclasses import replace

from watchdog.evidence import Evidence, Process

_ADDRESS = re.compile(r"[\d.]+$|[0-9a-fA-F:]+$")
_GUESSED = re.compile(r"number guessed|the only engine here")


def told_apart(other: Evidence, first: Evidence) -> Evidence:
    """The second evidence with new names for processes that are others than in the first.

    Engines whose number was only counted on their node get the next free numbers, with all that
    belongs to them; whatever else has a name that is taken gets its host and pid into it. A dead
    rank of unknown pid is the same rank wherever it is told of.
    """
    taken = {process.key: process for process in first.processes}
    engines = _new_numbers(other, first)
    renamed = []
    for process in other.processes:
        one = process
        if process.engine in engines and process.role in ("engine", "engine_worker"):
            one = _renumbered(process, engines[process.engine])
        known = taken.get(one.key)
        if known is not None and _differ(known, one):
            one = replace(one, key=f"{one.key} ({one.host}:{one.pid})")
        renamed.append(one)
    events = tuple(
        replace(event, engine=engines[event.engine]) if event.engine in engines else event
        for event in other.log_events
    )
    return replace(other, processes=tuple(renamed), log_events=events)


def _differ(one: Process, other: Process) -> bool:
    """Whether they surely are two processes."""
    if None in (one.pid, other.pid) or not one.host or not other.host:
        return False
    if one.pid != other.pid:
        return True
    # A log may know by its address the host that another source knows by name.
    is_address = any(_ADDRESS.match(each.host) for each in (one, other))
    return one.host != other.host and not is_address


def _new_numbers(other: Evidence, first: Evidence) -> dict[int | None, int]:
    """Old number to new one, for engines of which only the order of start was known."""
    known = {p.key: p for p in first.processes}
    numbers = {p.engine for p in (*first.processes, *other.processes) if p.engine is not None}
    free = max(numbers, default=-1) + 1
    found: dict[int | None, int] = {}
    for process in other.processes:
        same = known.get(process.key)
        if process.engine is None or process.engine in found or same is None:
            continue
        if _differ(same, process) and _GUESSED.search(process.identified_by):
            found[process.engine] = free
            free += 1
    return found


def _renumbered(process: Process, number: int) -> Process:
    key = re.sub(r"^engine \d+", f"engine {number}", process.key)
    by = f"{process.identified_by}; engine {process.engine} of {process.host}"
    return replace(process, key=key, engine=number, identified_by=by)
