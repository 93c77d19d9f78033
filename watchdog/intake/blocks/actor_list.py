"""`ray list actors --detail` and `ray get actors`: one YAML entry an actor."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block, actor_table
from watchdog.intake.parts import Parts

LINE_LITERALS = ("actor_id: ",)
MAX_LINES = 200

_FIRST = re.compile(r"(?P<dash>- +)?actor_id: *['\"]?[0-9a-f]{8,64}['\"]?\s*$")
_PAIR = re.compile(r" *(?P<name>[a-z_]+): *['\"]?(?P<value>[^'\"]*)['\"]?\s*$")
_KEPT = {"class_name": "CLASS_NAME", "state": "STATE", "name": "NAME", "pid": "PID"}


def opens(text: str) -> bool:
    """`-   actor_id: 4f…`, also without the dash where there is one actor."""
    return "actor_id: " in text and _FIRST.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """Indented lines, or the other pairs where the first was not indented either."""
    if len(block.lines) > MAX_LINES or opens(text):
        return False
    return text.startswith(" ") or (
        not block.lines[0].startswith("-") and _PAIR.match(text) is not None
    )


def parse(block: Block, parts: Parts) -> None:
    """One part for an actor that trains or generates, with what it died of."""
    row: dict[str, str] = {}
    why = ""
    for line in block.lines[1:]:
        pair = _PAIR.match(line)
        if pair is None:
            continue
        column = _KEPT.get(pair["name"])
        if column is not None and pair["value"]:
            row.setdefault(column, pair["value"])
        elif pair["name"] == "error_message" and not why:
            why = pair["value"]
    if "CLASS_NAME" in row and "STATE" in row:
        actor_table.add_actor(row, block, parts, why)
