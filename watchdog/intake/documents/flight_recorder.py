"""torch's flight recorder, NCCL's and gloo's, as JSON or pickle.

gloo's dumps need care: finished work keeps `state: scheduled` (read `retired`), a group's id
counts differently on every rank (only the name in each entry's `process_group` is the same), and
the configuration has an entry with an empty name.

Source:
    torch 2.13, `torch.distributed` flight recorder, measured on gloo dumps.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from watchdog.evidence import Collective
from watchdog.intake.blocks import Context
from watchdog.intake.parts import Parts, ProcessPart, Who
from watchdog.intake.plain_pickle import PickleRefusedError, plain_pickle

MAX_ENTRIES = 20_000
KEEP_FINISHED = 3
_ELEMENT_BYTES = {"Float": 4, "Int": 4, "Long": 8, "Double": 8, "Half": 2, "BFloat16": 2, "Byte": 1}


def score(head: str) -> float:
    """An object with entries and groups' configuration."""
    start = head.lstrip()
    if not start.startswith("{"):
        return 0.0
    names = ('"entries"', '"pg_config"', '"pg_status"', '"nccl_comm_state"', '"comm_lib_version"')
    found = sum(name in head for name in names)
    # A dump with sorted names has its version at the end, behind all entries.
    return 0.95 if found >= 2 or (found and '"version"' in head) else 0.0


def parse(text: str, context: Context, parts: Parts) -> None:
    """The last collectives of every group of this rank."""
    read_dump(json.loads(text), context, parts)


def score_bytes(head: bytes) -> float:
    """The pickle of such an object: a dict with these names near its beginning."""
    if not head.startswith(b"\x80") or len(head) < 2 or head[1] > 5:
        return 0.0
    names = (b"entries", b"pg_config", b"version", b"nccl_comm_state")
    return 0.95 if any(name in head for name in names) else 0.5


def parse_bytes(data: bytes, context: Context, parts: Parts) -> None:
    """The same from a pickle, of which nothing is ever executed.

    Raises:
        ValueError: It holds more than containers and scalars, or is no dump.
    """
    try:
        loaded = plain_pickle(data)
    except PickleRefusedError as error:
        raise ValueError(str(error)) from error
    read_dump(loaded, context, parts)


def read_dump(data: object, context: Context, parts: Parts) -> None:
    """Add the collectives of a loaded dump.

    Raises:
        ValueError: It has no list of entries.
    """
    if not isinstance(data, dict) or not isinstance(data.get("entries"), list):
        raise ValueError("no flight recorder: no list of entries")
    entries = [entry for entry in data["entries"][-MAX_ENTRIES:] if isinstance(entry, dict)]
    rank = data.get("rank")
    who = Who(rank=rank, role="trainer") if isinstance(rank, int) and 0 <= rank < 10**6 else Who()
    parts.add_process(
        ProcessPart(
            who=who.or_else(context.who),
            file_who=context.file_who,
            file=context.file,
            moment=context.moment,
            order=context.order,
            collectives=tuple(collectives_of(entries, data.get("pg_config"))),
        )
    )


def collectives_of(entries: Sequence[dict[str, Any]], config: object) -> list[Collective]:
    """The last finished and the oldest unfinished collective of each group, oldest first."""
    kept: dict[str, list[Collective]] = {}
    for entry in entries:
        found = _collective(entry, config)
        own = kept.setdefault(found.group, [])
        if own and not own[-1].finished:
            continue
        own.append(found)
        if len(own) > KEEP_FINISHED:
            del own[0]
    return [collective for own in list(kept.values())[:200] for collective in own]


def _collective(entry: dict[str, Any], config: object) -> Collective:
    name, description = _group(entry)
    op = str(entry.get("profiling_name") or "")[:100]
    return Collective(
        op=op.rsplit(":", 1)[-1].lower(),
        group=description or name,
        group_ranks=_ranks(config, name),
        sequence=_whole(entry.get("collective_seq_id")),
        num_bytes=_num_bytes(entry),
        call_site=_call_site(entry.get("frames")),
        finished=bool(entry.get("retired")) or entry.get("state") == "completed",
    )


def _group(entry: dict[str, Any]) -> tuple[str, str]:
    group = entry.get("process_group")
    if isinstance(group, (list, tuple)) and group:
        name, description = str(group[0])[:200], str(group[1])[:200] if len(group) > 1 else ""
        return name, "" if description in ("undefined", "default_pg") else description
    return "", ""


def _ranks(config: object, name: str) -> tuple[int, ...]:
    for group in config.values() if isinstance(config, dict) else ():
        if isinstance(group, dict) and str(group.get("name")) == name:
            found = group.get("ranks")
            if isinstance(found, str) and len(found) < 100_000:
                found = [
                    int(text) for text in found.strip("[]").split(",") if text.strip().isdigit()
                ]
            if isinstance(found, list):
                return tuple(sorted(rank for rank in found[:100_000] if isinstance(rank, int)))
    return ()


def _num_bytes(entry: dict[str, Any]) -> int | None:
    sizes, kinds = entry.get("input_sizes"), entry.get("input_dtypes")
    if not isinstance(sizes, list) or not sizes:
        return None
    total = 0
    for index, size in enumerate(sizes[:1000]):
        kind = kinds[index] if isinstance(kinds, list) and index < len(kinds) else "Float"
        elements = 1
        for length in size[:16] if isinstance(size, list) else ():
            elements *= length if isinstance(length, int) and 0 <= length < 2**40 else 0
        total += elements * _ELEMENT_BYTES.get(str(kind), 4)
    return total


def _call_site(frames: object) -> str:
    for frame in frames[:100] if isinstance(frames, list) else ():
        if not isinstance(frame, dict):
            continue
        file = str(frame.get("filename") or "")
        if "/torch/" not in file and not file.startswith(("torch/", "<")):
            return f"{file}:{frame.get('line')} {frame.get('name')}"[:500]
    return ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**63 else None
