"""Kinds of text that may stand anywhere in a file: dumps, tracebacks, tables, counters.

Each module knows by a line's content whether its kind begins there (`opens`), which lines still
belong to it (`continues`), and how to read them (`parse`). `LINE_LITERALS` are strings of which
at least one stands in every first line: a big file is searched for them, not read line by line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from watchdog.intake.parts import NOBODY, Parts, ProcessPart, Who
from watchdog.intake.prefixes import Line
from watchdog.intake.times import Moment

MAX_BLOCK_LINES = 5_000


@dataclass(frozen=True)
class Context:
    """What the lines before a block say about it.

    Attributes:
        file: Name of the file.
        file_who: What the name of the file says.
        who: What a heading says (`### actor rank 3`, `pid=402 cmd=…`, `== 9310`).
        moment: Time of the heading, or of the file name.
        title: The heading or command itself.
        order: Grows from part to part of one file, and with `t1`, `t2`, `after` in its name.
    """

    file: str = ""
    file_who: Who = NOBODY
    who: Who = NOBODY
    moment: Moment | None = None
    title: str = ""
    order: float = 0.0


@dataclass
class Block:
    """Consecutive lines of one stream, prefixes taken off.

    Attributes:
        first: The first line with what its prefix says.
        number: Its line number, from 1.
        context: What stood before it.
        lines: All lines, the first included.
    """

    first: Line
    number: int
    context: Context
    lines: list[str] = field(default_factory=list)

    def part(self, who: Who) -> ProcessPart:
        """What the block says of one process, as yet without what it says."""
        return ProcessPart(
            who=who,
            file_who=self.context.file_who,
            file=self.context.file,
            moment=self.context.moment or self.first.moment,
            order=self.context.order,
        )


class BlockKind(Protocol):
    """What a module of this package offers."""

    @property
    def LINE_LITERALS(self) -> Sequence[str]:  # noqa: N802 - a constant of the module
        """Strings of which at least one stands in every first line."""
        ...

    def opens(self, text: str) -> bool:
        """Whether a block of this kind begins with this line."""
        ...

    def continues(self, text: str, block: Block) -> bool:
        """Whether this line still belongs to the block."""
        ...

    def parse(self, block: Block, parts: Parts) -> None:
        """Add what the block says. Never raises for any content."""
        ...
