"""Resolved arguments as programs print them: Megatron's dotted list, `Namespace(…)`, pairs."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Context
from watchdog.intake.flags import flag
from watchdog.intake.parts import Parts

_DOTTED = re.compile(r"^(?:[\w\-]+:\s*)?\s*(?P<name>[A-Za-z_]\w{0,100}) \.{3,} ?(?P<value>.*?)\s*$")
_PAIR = re.compile(
    r"(?<![\w.])(?P<name>[a-z_][a-z0-9_]{1,100})=(?P<value>\[[^\]]*\]|\"[^\"]*\"|'[^']*'|[^\s,()]+)"
)
_NAMESPACE = re.compile(r"\bNamespace\(|\bArguments?\(")
MAX_PAIRS = 4_000


def score(head: str) -> float:
    """Dotted lines, a namespace, or lines that are little but `name=value`."""
    lines = [line for line in head.splitlines() if line.strip()]
    dotted = sum(_DOTTED.match(line) is not None for line in lines)
    if dotted >= 3 and dotted * 2 >= len(lines):
        return 0.9
    if _NAMESPACE.search(head[:2000]) and len(_PAIR.findall(head)) >= 5:
        return 0.7
    pairs = sum(len(_PAIR.findall(line)) for line in lines)
    covered = sum(bool(_PAIR.match(line.strip())) for line in lines)
    lower = pairs >= 3 and covered * 3 >= len(lines) * 2 and pairs > len(lines)
    return 0.6 if lower else 0.0


def parse(text: str, context: Context, parts: Parts) -> None:
    """One flag a pair."""
    num = 0
    for number, line in enumerate(text.splitlines(), start=1):
        origin = f"{context.file}:{number}"
        dotted = _DOTTED.match(line)
        pairs = [dotted] if dotted else list(_PAIR.finditer(line))
        for match in pairs:
            parts.add_flag(flag(match["name"], match["value"].strip(), origin))
            num += 1
        if num > MAX_PAIRS:
            break
    if not num:
        raise ValueError("no argument")
