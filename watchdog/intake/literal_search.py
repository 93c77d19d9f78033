"""Where in a big file any of some two hundred strings stand.

Python's `re` needs some 7 to 15 ns a byte for that, `grep` a quarter of it or less. So `grep` does
the searching where the file is a file and `grep` is installed (nearly everywhere), and `re` does
it for streams out of archives, and everywhere else. Both find the same lines.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import BinaryIO, Protocol

GREP_TIMEOUT_S = 600.0
_SPECIAL = re.compile(r"([\[\](){}.*+?^$|\\])")


class LiteralSearch(Protocol):
    """Finds literals in consecutive pieces of one file."""

    def positions(self, piece: bytes, offset: int) -> list[int]:
        """Where in this piece a match begins, ascending; at least one for each line with any.

        Args:
            piece: Whole lines, the next ones of the file.
            offset: Where in the file they begin.
        """
        ...


class RegexSearch:
    """Searches with one regular expression, in the piece itself."""

    def __init__(self, literals: Sequence[str]) -> None:
        self._pattern = re.compile(_trie_pattern([literal.encode() for literal in literals]))

    def positions(self, piece: bytes, offset: int) -> list[int]:
        """See `LiteralSearch`."""
        found: list[int] = []
        position = 0
        # One a line is enough, however often a line repeats it.
        while match := self._pattern.search(piece, position):
            found.append(match.start())
            position = piece.find(b"\n", match.start()) + 1
            if not position:
                break
        return found


class GrepFailedError(RuntimeError):
    """`grep` ended otherwise than by having searched everything."""


class GrepSearch:
    """Lets `grep` search the file beside us, and reads the offsets that it prints.

    A context manager: the process is gone when it is left.

    Args:
        path: The file; `grep` reads it through a descriptor that is opened here.
        literals: What to search for.
    """

    def __init__(self, path: str, literals: Sequence[str]) -> None:
        pattern = "|".join(_SPECIAL.sub(r"\\\1", literal) for literal in literals)
        self._file: BinaryIO = open(path, "rb")  # noqa: SIM115 - closed by __exit__
        # Offsets and matches only: a line may be as long as the file.
        command = ["grep", "--text", "--byte-offset", "--only-matching", "-E", "-e", pattern]
        self._process = subprocess.Popen(
            command,
            stdin=self._file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C", "PATH": _PATH},
        )
        self._offsets = self._read()
        self._next: int | None = -1

    def __enter__(self) -> GrepSearch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        if self._process.stdout:
            self._process.stdout.close()
        self._file.close()

    def positions(self, piece: bytes, offset: int) -> list[int]:
        """See `LiteralSearch`.

        Raises:
            GrepFailedError: It was killed, or refused the pattern.
        """
        found: list[int] = []
        end = offset + len(piece)
        while self._next is not None and self._next < end:
            if self._next >= offset:
                found.append(self._next - offset)
            self._next = next(self._offsets, None)
        return found

    def _read(self) -> Iterator[int]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, colon, _ = line.partition(b":")
            if colon and number.isdigit():
                yield int(number)
        if self._process.wait(timeout=GREP_TIMEOUT_S) not in (0, 1):
            raise GrepFailedError(f"grep ended with status {self._process.returncode}")


_PATH = "/usr/local/bin:/usr/bin:/bin"


def grep_is_usable() -> bool:
    """Whether there is a `grep` with the options that are needed (GNU and BSD have them)."""
    return shutil.which("grep", path=_PATH) is not None


def _trie_pattern(words: Sequence[bytes]) -> bytes:
    """A pattern that shares beginnings, so that a mismatch is found at the first byte."""
    root: dict[int, dict[int, object]] = {}
    for word in words:
        node: dict[int, object] = root  # type: ignore[assignment]
        for byte in word:
            child = node.setdefault(byte, {})
            assert isinstance(child, dict)
            node = child
        node.clear()
        node[-1] = True
    return _node_pattern(root)  # type: ignore[arg-type]


def _node_pattern(node: dict[int, object]) -> bytes:
    if -1 in node:
        return b""
    branches = [
        re.escape(bytes([byte])) + _node_pattern(child)
        for byte, child in node.items()
        if isinstance(child, dict)
    ]
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"
