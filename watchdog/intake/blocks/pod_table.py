"""`kubectl get pods`: which pods run, and which were ended."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, ProcessPart, Who

LINE_LITERALS = ()  # not what logs hold
MAX_ROWS = 5_000

_HEADER = re.compile(r"(?:NAMESPACE\s+)?NAME\s+READY\s+STATUS\s+RESTARTS\b")
_ROW = re.compile(
    r"(?:\S+\s+)?(?P<pod>[a-z0-9][a-z0-9.\-]*)\s+\d+/\d+\s+(?P<status>[A-Z]\w+)\s+\d+\b"
)
_ENDED = frozenset(
    ("Evicted", "OOMKilled", "Error", "Failed", "CrashLoopBackOff", "ContainerStatusUnknown")
)


def opens(text: str) -> bool:
    """The header of the table."""
    return _HEADER.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """Rows with ready containers and a status."""
    return len(block.lines) < MAX_ROWS and _ROW.match(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """An identity for each pod, and a part for each that has ended."""
    for line in block.lines[1:]:
        row = _ROW.match(line)
        if row is None:
            continue
        who = pod(row["pod"])
        parts.add_identity(who)
        if row["status"] in _ENDED:
            parts.add_process(
                ProcessPart(
                    who=who,
                    file=block.context.file,
                    moment=block.context.moment,
                    order=block.context.order,
                    status="dead",
                    status_detail=f"pod {row['pod']} {row['status']}",
                )
            )


def pod(name: str) -> Who:
    """Whoever runs in this pod; its name is the host's name in it."""
    return Who(host=name, by=(f"pod {name}",))
