"""A node's evidence on a board: small, with each stack written down once for the whole job.

Ranks that do the same have the same stack, so what travels grows with the number of different
behaviours and not with the number of ranks.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import replace
from typing import Any

from watchdog.evidence import Evidence, Gap, Process, StackSample
from watchdog.exchange.board import Board
from watchdog.serialization import from_data, to_data

_MAX_BYTES = 64 << 20


def post(board: Board, key: str, evidence: Evidence) -> None:
    """Write evidence under a key; stacks that another node wrote already are referred to.

    Raises:
        BoardError: The board does not answer.
    """
    classes: dict[str, str] = {}
    slim = []
    for process in evidence.processes:
        if process.stacks:
            name = classes[process.key] = behaviour(process)
            if not board.has(_stacks_key(key, name)):
                data = {"of": process.key, "stacks": [to_data(one) for one in process.stacks]}
                board.put(_stacks_key(key, name), _packed(data))
        slim.append(replace(process, stacks=()))
    data = to_data(replace(evidence, processes=tuple(slim)))
    board.put(key, _packed({"evidence": data, "classes": classes}))


def fetch(board: Board, key: str) -> Evidence | None:
    """Read what `post` wrote, stacks put back; `None` if nothing (readable) stands there.

    Raises:
        BoardError: The board does not answer.
    """
    note = board.get(key)
    if note is None:
        return None
    try:
        parcel = _unpacked(note)
        evidence = from_data(parcel["evidence"], Evidence)
        classes = dict(parcel["classes"])
    except Exception:  # written by another version, or cut
        return None
    stacks: dict[str, tuple[str, tuple[StackSample, ...]] | None] = {}
    processes = []
    for process in evidence.processes:
        name = classes.get(process.key)
        if name is not None and name not in stacks:
            stacks[name] = _stacks(board, _stacks_key(key, name))
        processes.append(process if name is None else _with_stacks(process, stacks[name]))
    return replace(evidence, processes=tuple(processes))


def behaviour(process: Process) -> str:
    """Name of the equivalence class of what a process does: phase, collective, all stacks.

    Counters, times, thread ids and local variables make no difference.
    """
    place = process.position
    collective = place.collective if place is not None else None
    doing: list[Any] = [process.role, process.status]
    doing += [place.section, place.phase] if place is not None else []
    doing += [collective.op, collective.group, collective.sequence] if collective else []
    for sample in process.stacks:
        doing.append(sample.source)
        for thread in sample.threads:
            frames = [(frame.function, frame.file, frame.line) for frame in thread.frames]
            doing.append((thread.name, thread.active, thread.owns_gil, frames))
    return hashlib.sha256(json.dumps(doing).encode()).hexdigest()[:24]


def _with_stacks(process: Process, found: tuple[str, tuple[StackSample, ...]] | None) -> Process:
    if found is None:
        gap = Gap(f"stacks of {process.key}", "the node that wrote them down was lost meanwhile")
        return replace(process, gaps=(*process.gaps, gap))
    of, stacks = found
    said = f"stacks are those of {of}, which are the same"
    # An answer says it already when it comes back in the result.
    if of != process.key and said not in process.identified_by:
        by = "; ".join(filter(None, (process.identified_by, said)))
        process = replace(process, identified_by=by)
    return replace(process, stacks=stacks)


def _stacks(board: Board, key: str) -> tuple[str, tuple[StackSample, ...]] | None:
    note = board.get(key)
    if note is None:
        return None
    try:
        data = _unpacked(note)
        return str(data["of"]), tuple(from_data(one, StackSample) for one in data["stacks"])
    except Exception:
        return None


def _stacks_key(key: str, name: str) -> str:
    return f"stacks/{key.split('/')[1]}/{name}"


def _packed(data: Any) -> bytes:
    return zlib.compress(json.dumps(data).encode(), 1)


def _unpacked(note: bytes) -> Any:
    # Notes come from other hosts: what would unpack without end is refused.
    return json.loads(zlib.decompressobj().decompress(note, _MAX_BYTES))
