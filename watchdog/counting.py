"""Numbers of things, in words that fit the number."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 rank`, `2 ranks`, `2 processes`; "0 ranks" for none."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or f'{noun}s'}"
