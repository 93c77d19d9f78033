"""A board that all nodes of a job can read and write, and what to do when one fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class BoardError(OSError):
    """The board cannot be reached, or not in time. The message says which and why."""


class Board(Protocol):
    """Notes under keys. No call waits for another node; each ends in bounded time.

    Keys are paths of letters, digits, `.`, `_` and `-`: `answer/weight_sync-0003/8`. Every
    method raises `BoardError` when the board does not answer.
    """

    @property
    def name(self) -> str:
        """What a report calls it: `torch.distributed store`."""
        ...

    def put(self, key: str, value: bytes) -> None:
        """Write a note, or replace it in one step."""
        ...

    def get(self, key: str) -> bytes | None:
        """Read a note; `None` if there is none."""
        ...

    def has(self, key: str) -> bool:
        """Whether there is a note; cheaper than reading a long one."""
        ...

    def claim(self, key: str, value: bytes) -> bytes:
        """Write a note if there is none; returns what stands there then. Of many, one wins."""
        ...


class Together:
    """Several boards as one. A board that fails once is not asked again.

    Notes go to every board, and are read from the first that has them, so that a store that
    dies in the middle takes nothing with it that a shared folder could keep.
    """

    def __init__(self, boards: Sequence[Board]) -> None:
        self._boards = list(boards)
        self.failures: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The names of those that still work."""
        return " and ".join(board.name for board in self._boards) or "nothing"

    def put(self, key: str, value: bytes) -> None:
        """Write to all of them."""
        self._each(lambda board: board.put(key, value))

    def get(self, key: str) -> bytes | None:
        """Read from the first that has it."""
        found = self._each(lambda board: board.get(key), until=lambda note: note is not None)
        return next((note for note in found if note is not None), None)

    def has(self, key: str) -> bool:
        """Whether any has it."""
        return any(self._each(lambda board: board.has(key), until=bool))

    def claim(self, key: str, value: bytes) -> bytes:
        """Claim on the first that works: all nodes that reach it agree."""
        return next(iter(self._each(lambda board: board.claim(key, value), until=lambda _: True)))

    def _each(
        self, ask: Callable[[Board], T], until: Callable[[T], bool] = lambda _: False
    ) -> Iterable[T]:
        answers: list[T] = []
        for board in tuple(self._boards):
            try:
                answers.append(ask(board))
            except BoardError as error:
                self._boards.remove(board)
                self.failures[board.name] = str(error)
                continue
            if until(answers[-1]):
                break
        if not answers:
            raise BoardError("; ".join(f"{name}: {why}" for name, why in self.failures.items()))
        return answers
