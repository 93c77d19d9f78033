"""`ray list tasks`: which call of which actor runs, and which wait behind it."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, RawEvent

LINE_LITERALS = ("TASK_ID", "NAME STATE")
MAX_ROWS = 2_000

_HEADER = re.compile(
    r"\s*(?:TASK_ID\s+)?(?:ATTEMPT_NUMBER\s+)?NAME\s+STATE\b(?=.*\bACTOR(?:_ID)?\b)"
)
_ROW = re.compile(
    r"\s*(?:\d+\s+)?(?:(?P<task>[0-9a-f]{4,56})\s+)?(?:\d+\s+)?(?P<name>[A-Za-z_][\w.]*\.[\w.]+)\s+"
    r"(?P<state>[A-Z][A-Z_]{3,60})\b(?P<rest>.*)$"
)


def opens(text: str) -> bool:
    """The header of the table."""
    return "STATE" in text and _HEADER.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """Rows with a method's name and a state."""
    return len(block.lines) < MAX_ROWS and _ROW.match(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """One `ray_task` event a row."""
    header = block.lines[0].split()
    column = next(i for i, name in enumerate(header) if name.startswith("ACTOR"))
    after_state = column - header.index("STATE") - 1
    parent = None
    if "PARENT_TASK_ID" in header:
        parent = header.index("PARENT_TASK_ID") - header.index("STATE") - 1
    for offset, line in enumerate(block.lines[1:], start=1):
        row = _ROW.match(line)
        rest = row["rest"].split() if row else []
        if row is None or len(rest) <= after_state:
            continue
        fields = {"name": row["name"], "state": row["state"], "actor": rest[after_state][:80]}
        if row["task"] and parent is not None and len(rest) > parent:
            fields |= {"task": row["task"], "parent": rest[parent][:80]}
        context = block.context
        parts.add_event(
            RawEvent(
                "ray_task",
                " ".join(line.split())[:300],
                context.file,
                block.number + offset,
                context.moment,
                fields=fields,
            )
        )
