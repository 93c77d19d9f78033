"""A docstring under fixed headings: it is the documentation, and has no second place."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence


def texts_under(docstring: str | None, headings: Sequence[str], name: str) -> list[str]:
    """The first line of a docstring, and the text under each heading on one line.

    Args:
        docstring: The whole of it.
        headings: In the order in which they must stand.
        name: Whose it is, for an error.

    Raises:
        ValueError: A heading is missing, out of order or empty; the message names it.
    """
    title, _, rest = (docstring or "").strip().partition("\n")
    texts = [title.strip()]
    for heading, following in zip(headings, (*headings[1:], None), strict=True):
        before, found, after = rest.partition(f"\n{heading}\n")
        if not found or before.strip():
            raise ValueError(f"{name}: heading {heading!r} is missing or out of order")
        body, cut, tail = after.partition(f"\n{following}\n") if following else (after, "", "")
        texts.append(" ".join(textwrap.dedent(body).split()))
        if not texts[-1]:
            raise ValueError(f"{name}: nothing stands under {heading!r}")
        rest = cut + tail
    return texts
