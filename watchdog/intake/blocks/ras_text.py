"""`ncclras`: how far each rank of a communicator has launched."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, RawEvent, Who

LINE_LITERALS = ("launched up to operation", "NCCL RAS")

_LAUNCHED = re.compile(
    r"\s*(?P<num>\d+) ranks? (?:has|have) launched up to operation (?P<operation>\d+)"
)
_RANK = re.compile(
    r"rank (?P<rank>\d{1,6}) -- GPU \S+ managed by process (?P<pid>\d{1,9})"
    r" on node (?P<node>[\w.\-]+)"
)
_DEAD = re.compile(r"rank (?P<rank>\d{1,6}).{0,80}?(?P<what>dead|not responding|unreachable)", re.I)


def opens(text: str) -> bool:
    """A line that says how far some ranks are."""
    return "launched up to operation" in text


def continues(text: str, block: Block) -> bool:
    """Further such lines, and the ranks that they list."""
    return opens(text) or _RANK.search(text) is not None or _DEAD.search(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """`ras_operations` for each line with a count; `ras_behind` for each rank that is listed."""
    context = block.context
    operation, highest = "", 0
    for offset, line in enumerate(block.lines):
        launched = _LAUNCHED.match(line)
        number = block.number + offset
        if launched:
            operation = launched["operation"]
            highest = max(highest, int(operation[:18]))
            fields = {"num_ranks": launched["num"], "operation": operation}
            parts.add_event(
                RawEvent("ras_operations", line.strip()[:300], context.file, number, fields=fields)
            )
        for match in _RANK.finditer(line):
            who = Who(
                pid=int(match["pid"]),
                rank=int(match["rank"]),
                host=match["node"],
                by=("NCCL RAS",),
            )
            behind = max(0, highest - int(operation[:18] or 0))
            fields = {"operation": operation, "behind": str(behind)}
            parts.add_event(
                RawEvent("ras_behind", line.strip()[:300], context.file, number, None, who, fields)
            )
