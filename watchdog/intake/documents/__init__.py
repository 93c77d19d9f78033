"""Kinds of files that are one thing as a whole: JSON, pickles, scripts, configuration.

Each module says by content alone how sure it is (`score`, 0 to 1, from the first part of the
text) and reads the text (`parse`), raising `ValueError` where it was wrong, so that the next best
kind, or the reader of lines, gets the file.
"""

from __future__ import annotations

from typing import Protocol

from watchdog.intake.blocks import Context
from watchdog.intake.parts import Parts

HEAD_CHARS = 16_384


class DocumentKind(Protocol):
    """What a module of this package offers."""

    def score(self, head: str) -> float:
        """How surely a text that begins like this is of this kind; 0 is not at all."""
        ...

    def parse(self, text: str, context: Context, parts: Parts) -> None:
        """Add what the text says.

        Raises:
            ValueError: It is not of this kind after all.
        """
        ...
