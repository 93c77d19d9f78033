"""Archives, read in place: nothing is unpacked to disk, and nothing in them can make us grow.

Members are read as streams, one after the other, with limits on their number, on the bytes of
each and of all, and on how much larger than the archive they may be. Names that lead out of the
archive only are names: no path is ever built from them.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, BinaryIO, cast

MAX_MEMBERS = 5_000
MAX_MEMBER_BYTES = 4 * 2**30
MAX_TOTAL_BYTES = 8 * 2**30
# Logs pack to a tenth, at best to a thirtieth: what grows more than this is no log.
MAX_RATIO = 100
FREE_BYTES = 64 * 2**20
# Looking at a line costs far more than unpacking it. A real line is never packed into less than
# some bytes, one of a bomb into a fraction of one.
FREE_LINES = 50_000
PACKED_BYTES_PER_LINE = 4
# What a long line costs more than a short one.
CHARS_PER_LINE = 2_000
MAX_NESTING = 2

_TAR_MAGIC = (b"ustar\x0000", b"ustar  \x00")


class ArchiveRefusedError(ValueError):
    """An archive, or a member of it, goes beyond a limit or is broken; the message says which."""


class Budget:
    """How many bytes may still come out of an archive, and how many lines be looked at.

    Args:
        packed_bytes: Size of the archive on disk.
        outer: That of the archive it lies in: what comes out of the inner one counts there too.
    """

    def __init__(self, packed_bytes: int, outer: Budget | None = None) -> None:
        self.left = min(MAX_TOTAL_BYTES, FREE_BYTES + packed_bytes * MAX_RATIO)
        self.lines_left = FREE_LINES + packed_bytes // PACKED_BYTES_PER_LINE
        self.members_left = MAX_MEMBERS
        self._outer = outer

    def take(self, num_bytes: int) -> None:
        """Count bytes that came out.

        Raises:
            ArchiveRefusedError: More came out than may.
        """
        if self._outer is not None:
            self._outer.take(num_bytes)
        self.left -= num_bytes
        if self.left < 0:
            raise ArchiveRefusedError(
                "grows beyond its limit when it is unpacked: a bomb, or too large to read in place"
            )

    def take_line(self, num_chars: int) -> None:
        """Count a line that is looked at, a long one several times.

        Raises:
            ArchiveRefusedError: There were too many for the size of the archive.
        """
        if self._outer is not None:
            self._outer.take_line(num_chars)
        self.lines_left -= 1 + num_chars // CHARS_PER_LINE
        if self.lines_left < 0:
            raise ArchiveRefusedError(
                "holds more lines than its size explains, a bomb or one line over and over: "
                "read only up to there"
            )

    def take_member(self) -> None:
        """Count a member.

        Raises:
            ArchiveRefusedError: There are too many.
        """
        if self.lines_left < 0:
            self.take_line(0)
        self.members_left -= 1
        if self.members_left < 0:
            raise ArchiveRefusedError(f"more than {MAX_MEMBERS} members")


class _Readable(io.RawIOBase):
    """A stream of which `read` is the only thing to say."""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The same into a buffer, as the standard library's readers ask for it."""
        data = self.read(len(buffer)) or b""
        buffer[: len(data)] = data
        return len(data)


class BoundedStream(_Readable):
    """A member's bytes, counted against the budget of its archive."""

    def __init__(self, stream: IO[bytes], budget: Budget) -> None:
        self._stream = stream
        self._budget = budget
        self._read = 0

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; everything up to a limit for -1.

        Raises:
            ArchiveRefusedError: Beyond a limit, or the compressed data is broken.
        """
        size = MAX_MEMBER_BYTES if size is None or size < 0 else size
        pieces: list[bytes] = []
        while size > 0:
            try:
                data = self._stream.read(min(size, 2**20))
            except (OSError, EOFError, zlib.error, ValueError, RuntimeError, IndexError) as error:
                raise ArchiveRefusedError(f"broken: {error}"[:200]) from error
            if not data:
                break
            self._budget.take(len(data))
            self._read += len(data)
            if self._read > MAX_MEMBER_BYTES:
                raise ArchiveRefusedError(f"more than {MAX_MEMBER_BYTES} bytes in one member")
            pieces.append(data)
            size -= len(data)
        return b"".join(pieces)


def archive_kind(head: bytes) -> str:
    """`gzip`, `zstd`, `zip`, `tar` by the first bytes, "" for anything else."""
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "zstd"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head[257:265] in _TAR_MAGIC or head[257:262] == b"ustar":
        return "tar"
    return ""


def members(
    kind: str, stream: BinaryIO, budget: Budget
) -> Iterator[tuple[str, BinaryIO, int | None]]:
    """Name, stream and size (if known) of each regular member, in order.

    Each stream must be read before the next is asked for. A compressed file that is no archive
    gives one member with an empty name.

    Raises:
        ArchiveRefusedError: Beyond a limit, broken, encrypted, or no decompressor is installed.
    """
    try:
        if kind == "zip":
            yield from _zip_members(stream, budget)
        elif kind == "tar":
            yield from _tar_members(stream, budget)
        else:
            yield from _compressed(kind, stream, budget)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, OSError) as error:
        raise ArchiveRefusedError(f"broken {kind} archive: {error}"[:200]) from error
    except (NotImplementedError, RuntimeError, ValueError, IndexError, KeyError) as error:
        if isinstance(error, ArchiveRefusedError):
            raise
        raise ArchiveRefusedError(f"{kind} archive that cannot be read: {error}"[:200]) from error


def _zip_members(stream: BinaryIO, budget: Budget) -> Iterator[tuple[str, BinaryIO, int | None]]:
    with zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            budget.take_member()
            if info.is_dir():
                continue
            if info.flag_bits & 1:
                raise ArchiveRefusedError(f"{info.filename[:200]} is encrypted")
            with archive.open(info) as member:
                bounded = BoundedStream(member, budget)
                yield info.filename, cast(BinaryIO, bounded), info.file_size


def _tar_members(stream: BinaryIO, budget: Budget) -> Iterator[tuple[str, BinaryIO, int | None]]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for info in archive:
            budget.take_member()
            # Links, devices and pipes are only names of something else.
            member = archive.extractfile(info) if info.isreg() else None
            if member is not None:
                yield info.name, cast(BinaryIO, BoundedStream(member, budget)), info.size


def _compressed(
    kind: str, stream: BinaryIO, budget: Budget
) -> Iterator[tuple[str, BinaryIO, int | None]]:
    inner = io.BufferedReader(BoundedStream(_decompressed(kind, stream), budget), 2**16)
    head = inner.peek(512)[:512]
    if archive_kind(head) == "tar":
        yield from _tar_members(cast(BinaryIO, inner), budget)
    else:
        yield "", cast(BinaryIO, inner), None


def _decompressed(kind: str, stream: BinaryIO) -> BinaryIO:
    if kind == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream))
    try:
        import zstandard
    except ImportError as error:
        raise ArchiveRefusedError(
            "zstd needs the extra `zstd`: pip install 'miles-watchdog[zstd]'"
        ) from error
    reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(stream)
    return cast(BinaryIO, reader)


def rewound(head: bytes, stream: BinaryIO) -> BinaryIO:
    """The stream from its beginning, after `head` was read from it."""
    if stream.seekable():
        stream.seek(0)
        return stream
    return cast(BinaryIO, _Joined(head, stream))


class _Joined(_Readable):
    """What was read of a stream already, and the rest of it."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, of the head first."""
        if self._head:
            size = len(self._head) if size is None or size < 0 else size
            data, self._head = self._head[:size], self._head[size:]
            return data
        return self._stream.read(size)
