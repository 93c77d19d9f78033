"""A log of any size in constant memory: only lines that may mean something are looked at.

Those are lines with a known string, all lines of a block that such a line opens, the beginning
and the end of the file, and a sample in between (for the last line of each stream and for
counters that stand in every other line).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Protocol

from watchdog.intake.literal_search import LiteralSearch

PIECE_BYTES = 4 * 2**20
HEAD_BYTES = 64 * 2**10
TAIL_BYTES = 512 * 2**10
SAMPLE_BYTES = 4 * 2**10
MAX_LINE_BYTES = 64 * 2**10


class LineTaker(Protocol):
    """Who gets the lines."""

    @property
    def inside_block(self) -> bool:
        """Whether the next line matters whatever it holds."""
        ...

    def feed(self, number: int, raw: str, known: bool = True) -> None:
        """Take one line."""
        ...


def scan(
    stream: BinaryIO, size: int | None, search: LiteralSearch, taker: LineTaker
) -> Iterator[int]:
    """Read a stream to its end, handing over the lines that matter.

    Args:
        stream: What to read, UTF-8 or close to it.
        size: Its bytes, for knowing where the end begins; `None` where it is not known.
        search: Finds known strings.
        taker: Gets the lines, in order.

    Yields:
        Bytes read so far, after each piece.
    """
    offset, number = 0, 1
    for piece, is_last in _marked_last(_pieces(stream)):
        wanted = _windows(len(piece), offset, size, is_last)
        hits = search.positions(piece, offset)
        number = _hand_over(piece, number, hits, wanted, taker)
        offset += len(piece)
        yield offset


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Whole lines, a few MiB at a time; a line longer than that comes in several pieces."""
    rest = b""
    while data := stream.read(PIECE_BYTES):
        data = rest + data
        cut = data.rfind(b"\n") + 1
        if cut == 0 and len(data) < 2 * PIECE_BYTES:
            rest = data
            continue
        cut = cut or len(data)
        rest = data[cut:]
        yield data[:cut]
    if rest:
        yield rest


def _marked_last(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    previous = next(pieces, None)
    for piece in pieces:
        yield previous or b"", False
        previous = piece
    if previous is not None:
        yield previous, True


def _windows(length: int, offset: int, size: int | None, is_last: bool) -> list[tuple[int, int]]:
    """Parts of a piece of which every line is wanted, ascending."""
    windows: list[tuple[int, int]] = []
    if offset < HEAD_BYTES:
        windows.append((0, min(length, HEAD_BYTES - offset)))
    end = offset + length if is_last else size
    if end is not None and offset + length > end - TAIL_BYTES:
        windows.append((max(0, end - TAIL_BYTES - offset), length))
    elif length > SAMPLE_BYTES:
        windows.append((length - SAMPLE_BYTES, length))
    return windows


def _hand_over(
    piece: bytes,
    number: int,
    hits: list[int],
    windows: list[tuple[int, int]],
    taker: LineTaker,
) -> int:
    """Feed the lines of one piece; returns the number of the line behind it."""
    position, next_hit, next_window = 0, 0, 0
    while position < len(piece):
        if taker.inside_block:
            start = position
        else:
            while next_hit < len(hits) and hits[next_hit] < position:
                next_hit += 1
            while next_window < len(windows) and windows[next_window][1] <= position:
                next_window += 1
            targets = hits[next_hit : next_hit + 1]
            targets += [max(position, window[0]) for window in windows[next_window:][:1]]
            if not targets:
                break
            start = piece.rfind(b"\n", position, min(targets)) + 1 or position
        number += piece.count(b"\n", position, start)
        end = piece.find(b"\n", start)
        end = len(piece) if end < 0 else end
        taker.feed(number, _text(piece, start, end))
        position = end + 1
        number += 1
    return number + piece.count(b"\n", position) if position < len(piece) else number


def _text(piece: bytes, start: int, end: int) -> str:
    if end - start > MAX_LINE_BYTES:
        half = MAX_LINE_BYTES // 2
        line = piece[start : start + half] + b" ... " + piece[end - half : end]
    else:
        line = piece[start:end]
    return line.decode("utf-8", "replace").rstrip("\r")
