"""A board in memory whose calls can be made to fail, for the tests of this folder."""

from __future__ import annotations

from watchdog.exchange.board import BoardError


class MemoryBoard:
    """Notes in a dict.

    Attributes:
        notes: All of them; share the dict to share the board.
        is_gone: Whether every call fails from now on.
    """

    def __init__(self, notes: dict[str, bytes] | None = None, name: str = "memory") -> None:
        self.notes = {} if notes is None else notes
        self.name = name
        self.is_gone = False

    def put(self, key: str, value: bytes) -> None:
        self._ask()
        self.notes[key] = value

    def get(self, key: str) -> bytes | None:
        self._ask()
        return self.notes.get(key)

    def has(self, key: str) -> bool:
        self._ask()
        return key in self.notes

    def claim(self, key: str, value: bytes) -> bytes:
        self._ask()
        return self.notes.setdefault(key, value)

    def _ask(self) -> None:
        if self.is_gone:
            raise BoardError("gone")
