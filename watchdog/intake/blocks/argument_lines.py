"""Resolved arguments in a log: Megatron's dotted list, and argparse's `Namespace(…)`."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block
from watchdog.intake.flags import PAIR, flag
from watchdog.intake.parts import Parts

LINE_LITERALS = (" ......", "Namespace(")
MAX_ARGUMENTS = 4_000

_DOTTED = re.compile(r"\s*(?P<name>[A-Za-z_]\w{0,100}) \.{3,} ?(?P<value>.*?)\s*$")


def opens(text: str) -> bool:
    """A dotted line, or a namespace with several arguments."""
    if "Namespace(" in text:
        return len(PAIR.findall(text[:4_000])) >= 3
    return " ..." in text and _DOTTED.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """Further dotted lines."""
    return len(block.lines) <= MAX_ARGUMENTS and _DOTTED.match(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """One flag an argument."""
    for offset, line in enumerate(block.lines):
        origin = f"{block.context.file}:{block.number + offset}"
        dotted = _DOTTED.match(line)
        for match in [dotted] if dotted else PAIR.finditer(line):
            parts.add_flag(flag(match["name"], match["value"].strip(), origin))
