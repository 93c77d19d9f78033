"""Resolved arguments as `name=value` pairs, line after line, and little else."""

from __future__ import annotations

from watchdog.intake.blocks import Context
from watchdog.intake.flags import PAIR, flag
from watchdog.intake.parts import Parts

MAX_PAIRS = 4_000
MAX_CHARS = 2**20


def score(head: str) -> float:
    """Most lines begin with a pair, and there are more pairs than lines."""
    lines = [line for line in head.splitlines() if line.strip()]
    pairs = sum(len(PAIR.findall(line)) for line in lines)
    beginning = sum(bool(PAIR.match(line.strip())) for line in lines)
    enough = pairs >= 3 and pairs > len(lines) and beginning * 3 >= len(lines) * 2
    return 0.6 if enough else 0.0


def parse(text: str, context: Context, parts: Parts) -> None:
    """One flag a pair."""
    if len(text) > MAX_CHARS:
        raise ValueError("too large for a list of arguments")
    num = 0
    for number, line in enumerate(text.splitlines(), start=1):
        for match in PAIR.finditer(line):
            parts.add_flag(flag(match["name"], match["value"], f"{context.file}:{number}"))
            num += 1
        if num > MAX_PAIRS:
            break
    if not num:
        raise ValueError("no argument")
