"""One source after the other: what it is, and who reads it."""

from __future__ import annotations

import codecs
import io
import itertools
import re
import subprocess
from collections.abc import Sequence
from typing import BinaryIO, cast

from watchdog.intake.archives import (
    MAX_NESTING,
    ArchiveRefusedError,
    Budget,
    archive_kind,
    members,
    rewound,
)
from watchdog.intake.blocks import BlockKind, Context
from watchdog.intake.documents import HEAD_CHARS, DocumentKind, flight_recorder
from watchdog.intake.line_reader import LineReader, search_literals
from watchdog.intake.literal_search import (
    GrepFailedError,
    GrepSearch,
    LiteralSearch,
    RegexSearch,
    grep_is_usable,
)
from watchdog.intake.log_scan import scan
from watchdog.intake.parts import Parts, RawEvent, who_by_file_name
from watchdog.intake.prefixes import has_slurm_labels
from watchdog.intake.sources import Progress, Source
from watchdog.intake.text import decode, encoding_of, looks_binary
from watchdog.intake.times import moment_by_file_name, only_moment

MAX_DOCUMENT_BYTES = 32 * 2**20
MAX_WHOLE_BYTES = 4 * 2**20
MIN_SCORE = 0.5

MAX_PASTED = 1_000
# In an archive, one line that comes more often without another between is skipped from there.
MAX_SAME_LINES = 1_000

_PASTED = re.compile(r"^==> (?P<name>.{1,300}) <==[ \t\r]*\n", re.MULTILINE)
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
        self._done = self._total = 0
        self._literals = search_literals(blocks)
        self._budget: Budget | None = None  # of the archive that is being read

    def read_all(self, sources: Sequence[Source]) -> None:
        """Read each source; what fails costs a gap, and the rest is read."""
        self._total = sum(source.size for source in sources)
        unknown = []
        for source in sources:
            self._report(source.name, 0)
            before = self._parts.extent()
            try:
                with source.open() as stream:
                    self.read_stream(source.name, stream, source.size, str(source.path))
            except OSError as error:
                self._parts.add_gap(source.name, f"cannot be read: {error.strerror or error}")
            if self._parts.leave_what_nobody_knows(before):
                unknown.append(source.name)
            self._done += source.size
        if unknown:
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            self._parts.add_note(f"nothing was recognised in {', '.join(unknown[:5])}{more}")
        self._report("", 0)

    def read_stream(
        self, name: str, stream: BinaryIO, size: int | None, path: str = "", nesting: int = 0
    ) -> None:
        """Read one file's bytes: an archive, a big log, or something small.

        Args:
            name: How the report calls it.
            stream: Its bytes from the beginning.
            size: How many, where that is known.
            path: Where it lies, if it lies anywhere by itself.
            nesting: How many archives it is in.
        """
        head = stream.read(MAX_WHOLE_BYTES)
        kind = archive_kind(head[:512])
        if kind:
            self._read_archive(kind, name, rewound(head, stream), size or len(head), nesting)
        elif flight_recorder.score_bytes(head[:65_536]) >= MIN_SCORE:
            self._read_pickle(name, head + stream.read(MAX_DOCUMENT_BYTES - len(head)))
        elif looks_binary(head):
            self._parts.add_gap(name, "is binary and of no known kind")
        elif len(head) < MAX_WHOLE_BYTES:
            if head:
                self.read_text(name, decode(head))
        elif head.lstrip()[:1] in (b"{", b"[") and self._is_document(head):
            data = head + stream.read(MAX_DOCUMENT_BYTES - len(head))
            if not self._read_document(decode(data), context_of(name)):
                rest = rewound(data, stream)
                self._read_log(name, data[:MAX_WHOLE_BYTES], rest, size, path)
        else:
            self._read_log(name, head, rewound(head, stream), size, path)

    def _read_archive(
        self, kind: str, name: str, stream: BinaryIO, size: int, nesting: int
    ) -> None:
        if nesting >= MAX_NESTING:
            self._parts.add_gap(name, "is an archive inside an archive inside an archive")
            return
        outer = self._budget
        self._budget = budget = Budget(size, outer)
        try:
            if kind == "zip" and not stream.seekable():
                stream = io.BytesIO(stream.read(MAX_DOCUMENT_BYTES))
            for member, content, member_size in members(kind, stream, budget):
                inside = f"{name}!{member}" if member else name.rsplit(".", 1)[0]
                self.read_stream(inside, content, member_size, nesting=nesting + 1)
        except ArchiveRefusedError as error:
            self._parts.add_gap(name, str(error), "unpack it and pass the files")
        finally:
            self._budget = outer

    def _read_log(
        self, name: str, head: bytes, stream: BinaryIO, size: int | None, path: str
    ) -> None:
        """A big log: through `grep` if it is a plain file, through `re` otherwise."""
        encoding, _ = encoding_of(head)
        first = head[:65_536].decode(encoding, "replace").split("\n")
        labels = has_slurm_labels(first)
        if path and encoding == "utf-8" and grep_is_usable():
            trial = Parts()
            try:
                with GrepSearch(path, self._literals) as grep:
                    self._scan(name, stream, size, grep, trial, labels)
                self._parts.absorb(trial)
                return
            except (GrepFailedError, OSError, subprocess.TimeoutExpired):
                self._parts.add_note(f"{name}: searched without grep, which failed")
                stream.seek(0)
        if encoding != "utf-8":
            stream = cast(BinaryIO, codecs.EncodedFile(stream, "utf-8", encoding, "replace"))
            size = None
        self._scan(name, stream, size, RegexSearch(self._literals), self._parts, labels)

    def _scan(
        self,
        name: str,
        stream: BinaryIO,
        size: int | None,
        search: LiteralSearch,
        parts: Parts,
        labels: bool,
    ) -> None:
        reader = self._line_reader(context_of(name), parts, labels)
        try:
            for done in scan(stream, size, search, reader):
                self._report(name, done)
        finally:
            reader.close()

    def _report(self, name: str, done: int) -> None:
        if self._progress:
            self._progress(name, self._done + done, self._total)

    def _is_document(self, head: bytes) -> bool:
        text = decode(head[: HEAD_CHARS * 2])[:HEAD_CHARS]
        return any(kind.score(text) >= MIN_SCORE for kind in self._documents)

    def _read_pickle(self, name: str, data: bytes) -> None:
        try:
            flight_recorder.parse_bytes(data, context_of(name), self._parts)
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            self._parts.add_gap(name, f"a pickle that is not used: {error}"[:300])

    def read_text(self, name: str, text: str) -> None:
        """Read a whole text: as the document that it most likely is, otherwise as lines."""
        inner = _pasted_files(text)
        if inner:
            for file, content in inner:
                self.read_text(f"{name}!{file}" if file else name, content)
            return
        moment = only_moment(text)
        if moment is not None:
            self._parts.dates.append((name, moment))
            self._parts.add_event(RawEvent("observed_at", text.strip(), name, 1, moment))
            return
        context = context_of(name)
        if self._read_document(text, context):
            return
        lines = text.split("\n")
        reader = self._line_reader(context, self._parts, has_slurm_labels(lines))
        try:
            for number, line in enumerate(lines, start=1):
                reader.feed(number, line.rstrip("\r"))
        finally:
            reader.close()

    def _line_reader(self, context: Context, parts: Parts, labels: bool) -> LineReader:
        if self._budget is None:
            return LineReader(context, self._blocks, parts, labels)
        return _CountedLines(context, self._blocks, parts, labels, self._budget)

    def _read_document(self, text: str, context: Context) -> bool:
        """Read a text as what it most likely is; False if it is no document after all."""
        head = text[:HEAD_CHARS]
        scored = [(kind.score(head), kind) for kind in self._documents]
        likely = [entry for entry in scored if entry[0] >= MIN_SCORE]
        for _, kind in sorted(likely, key=lambda entry: -entry[0]):
            try:
                kind.parse(text, context, self._parts)
            except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
                continue
            return True
        return False


class _CountedLines(LineReader):
    """Reads lines of an archive's member, and counts them against the archive's budget."""

    def __init__(
        self,
        context: Context,
        blocks: Sequence[BlockKind],
        parts: Parts,
        labels: bool,
        budget: Budget,
    ) -> None:
        super().__init__(context, blocks, parts, labels)
        self._budget = budget
        self._raw, self._same = "", 0

    def feed(self, number: int, raw: str, known: bool = True) -> None:
        """See `LineReader`.

        Raises:
            ArchiveRefusedError: The archive has too many lines.
        """
        self._budget.take_line(len(raw))
        self._same = self._same + 1 if raw == self._raw else 0
        self._raw = raw
        if self._same < MAX_SAME_LINES:
            super().feed(number, raw, known)


def _pasted_files(text: str) -> list[tuple[str, str]]:
    """Names and contents of files that `head` or `tail` printed one after the other.

    What stands before the first name has none; empty where no name stands in the text.
    """
    names = list(itertools.islice(_PASTED.finditer(text), MAX_PASTED))
    if not names:
        return []
    ends = [match.start() for match in names[1:]] + [len(text)]
    found = [("", text[: names[0].start()])] if text[: names[0].start()].strip() else []
    for match, end in zip(names, ends, strict=True):
        found.append((match["name"], text[match.end() : end]))
    return found


def context_of(name: str) -> Context:
    """What a file's name says on everything in it."""
    base = name.rsplit("/", 1)[-1]
    number = _SAMPLE_NUMBER.search(base)
    order = float(number[1]) if number else 2.0 if _LATER.search(base) else 1.0
    return Context(
        file=name, file_who=who_by_file_name(name), moment=moment_by_file_name(name), order=order
    )
