"""Long lists of ranks, shortened for people."""

from __future__ import annotations

from collections.abc import Iterable


def folded(ranks: Iterable[int]) -> str:
    """The ranks as ascending ranges, `0-2, 4, 6-7`; "" for none. Duplicates count once."""
    parts: list[str] = []
    ordered = sorted(set(ranks))
    start = 0
    for index, rank in enumerate(ordered):
        if index + 1 < len(ordered) and ordered[index + 1] == rank + 1:
            continue
        first = ordered[start]
        parts.append(str(first) if first == rank else f"{first}-{rank}")
        start = index + 1
    return ", ".join(parts)


def ranks_label(ranks: Iterable[int], noun: str = "rank") -> str:
    """`rank 3` or `ranks 0-2, 4`, or of whatever is numbered like them; "" for none."""
    unique = set(ranks)
    if not unique:
        return ""
    return f"{noun if len(unique) == 1 else f'{noun}s'} {folded(unique)}"
