"""Text in lines of a width: broken between words, or behind a slash where a path is too long.

A name that is broken elsewhere can neither be read nor searched for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PATH_PARTS = re.compile(r"[^/]*/+|[^/]+")
_FRAME = re.compile(r"(?P<call>\s*.+ \()(?P<file>[^()]+/[^()]*)\)")


def wrapped(text: str, columns: int, *, fold: bool = False) -> list[str]:
    """The words of the text in lines.

    Args:
        text: One line of printable text.
        columns: Width of a line; a wide character takes two.
        fold: Break what has no slash and is wider than a line at its edge, rather than let it
            stand out.

    Returns:
        At least one line, each without blanks around it.
    """
    from rich.cells import cell_len

    lines, used = [""], 0
    for piece, is_glued in _pieces(text, columns, fold):
        width = cell_len(piece)
        gap = "" if is_glued or not used else " "
        if used and used + len(gap) + width > columns:
            lines.append(piece)
            used = width
        else:
            lines[-1] += gap + piece
            used += len(gap) + width
    return lines


def _pieces(text: str, columns: int, fold: bool) -> Iterator[tuple[str, bool]]:
    """What stays together, and whether it belongs to the piece before it without a blank."""
    from rich.cells import cell_len, chop_cells

    for word in text.split():
        parts = [word] if cell_len(word) <= columns else _PATH_PARTS.findall(word)
        if fold:
            parts = [chopped for part in parts for chopped in chop_cells(part, columns)]
        for index, part in enumerate(parts):
            yield part, index > 0


def fitted_call(line: str, columns: int) -> str:
    """A line `function (file:number)` of a stack, with as much of the file's path as fits.

    The file's name, its line number, and lines that are no calls stay whole.
    """
    from rich.cells import cell_len

    call = _FRAME.fullmatch(line)
    if call is None or cell_len(line) <= columns:
        return line
    parts = call["file"].split("/")
    shorter = line
    for index in range(1, len(parts)):
        shorter = f"{call['call']}…/{'/'.join(parts[index:])})"
        if cell_len(shorter) <= columns:
            break
    return shorter
