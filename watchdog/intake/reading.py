"""One source after the other: what it is, and who reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import IO

from watchdog.intake.blocks import BlockKind, Context
from watchdog.intake.documents import HEAD_CHARS, DocumentKind, flight_recorder
from watchdog.intake.line_reader import LineReader
from watchdog.intake.parts import Parts, who_by_file_name
from watchdog.intake.prefixes import has_slurm_labels
from watchdog.intake.sources import Progress, Source
from watchdog.intake.text import decode, looks_binary
from watchdog.intake.times import moment_by_file_name

MAX_DOCUMENT_BYTES = 64 * 2**20
MAX_WHOLE_BYTES = 4 * 2**20
MIN_SCORE = 0.5

_SAMPLE_NUMBER = re.compile(r"(?<![a-z])t(?:ime|ry)?[_-]?(\d{1,2})(?!\d)", re.IGNORECASE)
_LATER = re.compile(r"after|later|again|second|2nd|_late\b|end\b", re.IGNORECASE)


class Reader:
    """Reads sources into parts.

    Args:
        parts: Where everything goes.
        documents: Kinds of whole files.
        blocks: Kinds of blocks among lines.
        progress: Hears how far the reading is.
    """

    def __init__(
        self,
        parts: Parts,
        documents: Sequence[DocumentKind],
        blocks: Sequence[BlockKind],
        progress: Progress | None = None,
    ) -> None:
        self._parts = parts
        self._documents = documents
        self._blocks = blocks
        self._progress = progress

    def read_all(self, sources: Sequence[Source]) -> None:
        """Read each source; what fails costs a gap, and the rest is read."""
        total = sum(source.size for source in sources)
        done = 0
        for source in sources:
            if self._progress:
                self._progress(source.name, done, total)
            try:
                with source.open() as stream:
                    self.read_stream(source.name, stream, source.size)
            except OSError as error:
                self._parts.add_gap(source.name, f"cannot be read: {error.strerror or error}")
            done += source.size
        if self._progress:
            self._progress("", total, total)

    def read_stream(self, name: str, stream: IO[bytes], size: int) -> None:
        """Read one file's bytes."""
        data = stream.read(MAX_WHOLE_BYTES)
        if not data:
            return
        if flight_recorder.score_bytes(data[:65_536]) >= MIN_SCORE:
            self._read_pickle(name, data + stream.read(MAX_DOCUMENT_BYTES - len(data)))
            return
        if looks_binary(data):
            self._parts.add_gap(name, "is binary and of no known kind")
            return
        self.read_text(name, decode(data))

    def _read_pickle(self, name: str, data: bytes) -> None:
        try:
            flight_recorder.parse_bytes(data, context_of(name), self._parts)
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            self._parts.add_gap(name, f"a pickle that is not used: {error}"[:300])

    def read_text(self, name: str, text: str) -> None:
        """Read a whole text: as the document that it most likely is, otherwise as lines."""
        context = context_of(name)
        head = text[:HEAD_CHARS]
        scored = sorted(
            ((kind.score(head), -index, kind) for index, kind in enumerate(self._documents)),
            key=lambda entry: entry[:2],
            reverse=True,
        )
        for score, _, kind in scored:
            if score < MIN_SCORE:
                break
            try:
                kind.parse(text, context, self._parts)
                return
            except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
                continue
        lines = text.split("\n")
        reader = LineReader(context, self._blocks, self._parts, has_slurm_labels(lines))
        for number, line in enumerate(lines, start=1):
            reader.feed(number, line.rstrip("\r"))
        reader.close()


def context_of(name: str) -> Context:
    """What a file's name says on everything in it."""
    base = name.rsplit("/", 1)[-1]
    number = _SAMPLE_NUMBER.search(base)
    order = float(number[1]) if number else 2.0 if _LATER.search(base) else 1.0
    return Context(
        file=name, file_who=who_by_file_name(name), moment=moment_by_file_name(name), order=order
    )
