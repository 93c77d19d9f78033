"""`ray list actors`: which actors are alive, by class, name, node and pid."""

from __future__ import annotations

import re
from dataclasses import replace

from watchdog.discovery.titles import role_by_process_name
from watchdog.evidence import ProcessStatus
from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, ProcessPart, Who

LINE_LITERALS = ("ACTOR_ID",)
MAX_ROWS = 10_000

_HEADER = re.compile(r"\s*ACTOR_ID\s+CLASS_NAME\s+STATE\b")
_ROW = re.compile(r"\s*\d+\s+[0-9a-f]{2,56}\s+\S+\s+[A-Z_]{4,40}\b")
_INDEX = re.compile(r"[-_](\d{1,5})$")
_STATUS: dict[str, ProcessStatus] = {"ALIVE": "running", "DEAD": "dead"}


def opens(text: str) -> bool:
    """The header of the table."""
    return "ACTOR_ID" in text and _HEADER.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """Rows that begin with a number and an id."""
    return len(block.lines) < MAX_ROWS and _ROW.match(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """One part for each actor that trains or generates."""
    rows = [_cells(line, "JOB_ID" in block.lines[0]) for line in block.lines[1:]]
    alive = {row.get("NAME") for row in rows if row["STATE"] == "ALIVE"}
    for row in rows:
        if row["STATE"] == "DEAD" and row.get("NAME") in alive - {None}:
            continue  # started again since
        add_actor(row, block, parts)


def add_actor(row: dict[str, str], block: Block, parts: Parts, why: str = "") -> None:
    """Add one actor, if it trains or generates.

    Args:
        row: Columns of Ray's table by name; `CLASS_NAME` and `STATE` at least.
        block: Where it stands.
        parts: Get the part.
        why: What it died of, in Ray's words.
    """
    role = role_by_process_name(row["CLASS_NAME"])
    pid = row.get("PID", "")
    if role is None or not pid.isdigit() or len(pid) > 9:
        return
    who = Who(
        pid=int(pid),
        role=role,
        actor=row["CLASS_NAME"],
        command=f"ray::{row['CLASS_NAME']}",
        by=(f"actor table ({row.get('NAME') or row['CLASS_NAME']})",),
    )
    index = _INDEX.search(row.get("NAME", ""))
    if index and role == "trainer":
        who = replace(who, rank=int(index[1]))
    elif index and role == "engine":
        who = replace(who, engine=int(index[1]))
    state = row["STATE"]
    detail = f"Ray actor {state}" if state != "ALIVE" else ""
    parts.add_process(
        ProcessPart(
            who=who,
            file=block.context.file,
            moment=block.context.moment,
            order=block.context.order,
            status=_STATUS.get(state, "unknown"),
            status_detail=f"{detail}: {why}"[:300] if detail and why else detail,
        )
    )


def _cells(line: str, has_job: bool) -> dict[str, str]:
    """Cells by what they look like: names may be empty, and columns do not line up."""
    _, _, name_of_class, state, *rest = line.split()
    cells = {"CLASS_NAME": name_of_class, "STATE": state}
    rest = rest[1:] if has_job else rest
    if rest and not re.fullmatch(r"[0-9a-f]{40,}", rest[0]) and not rest[0].isdigit():
        cells["NAME"] = rest[0]
    cells["PID"] = next((cell for cell in reversed(rest) if cell.isdigit() and len(cell) < 10), "")
    return cells
