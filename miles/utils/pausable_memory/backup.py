"""Copies of paused memory, on the host or on disk."""

from __future__ import annotations

import ctypes
import os
import tempfile
import weakref
from collections.abc import Iterator
from typing import ClassVar, Literal, Protocol

from miles.utils.pausable_memory.pages import PAGE_BYTES, Pages

BackupTarget = Literal["cpu", "disk"]


class Backup(Protocol):
    """The bytes of one allocation, kept while it is paused."""

    target: ClassVar[BackupTarget]

    def contents(self) -> Iterator[tuple[int, Pages, int]]:
        """Yield the copy piece by piece, in order and without gaps.

        Yields:
            Offset in bytes into the allocation, pages that hold the piece from their first
            byte on, and the piece's length in bytes; offset and length are whole pages.
            The pages of one piece may be used again for the next.
        """


class HostBackup:
    """A copy in host memory, readable while the original is paused."""

    target: ClassVar[BackupTarget] = "cpu"

    def __init__(self, source: Pages) -> None:
        self.pages = Pages(source.num_bytes)
        ctypes.memmove(self.pages.address, source.address, source.num_bytes)

    def contents(self) -> Iterator[tuple[int, Pages, int]]:
        """See `Backup.contents`."""
        yield 0, self.pages, self.pages.num_bytes


class DiskFile:
    """One file without a name: gone with the last backup in it, also after a kill.

    Args:
        folder: Where to keep it; made if missing.
        chunk_bytes: Most bytes written or read at once, rounded up to whole pages.
    """

    def __init__(self, folder: str, chunk_bytes: int) -> None:
        os.makedirs(folder, exist_ok=True)
        self.descriptor, path = tempfile.mkstemp(dir=folder)
        weakref.finalize(self, os.close, self.descriptor)
        os.unlink(path)
        self.num_bytes = 0
        self.chunk_bytes = -(-chunk_bytes // PAGE_BYTES) * PAGE_BYTES


class DiskBackup:
    """A copy in a file. Nobody can read it before the original is resumed.

    Raises:
        OSError: The disk is full or cannot be written.
    """

    target: ClassVar[BackupTarget] = "disk"

    def __init__(self, source: Pages, disk: DiskFile) -> None:
        self._disk = disk
        self._num_bytes = source.num_bytes
        self._start = disk.num_bytes
        with memoryview(source) as view:
            done = 0
            while done < self._num_bytes:
                chunk = view[done : done + disk.chunk_bytes]
                done += os.pwrite(disk.descriptor, chunk, self._start + done)
        disk.num_bytes += self._num_bytes

    def contents(self) -> Iterator[tuple[int, Pages, int]]:
        """See `Backup.contents`."""
        staging = Pages(min(self._disk.chunk_bytes, self._num_bytes))
        with memoryview(staging) as view:
            for offset in range(0, self._num_bytes, staging.num_bytes):
                length = min(staging.num_bytes, self._num_bytes - offset)
                self._read(view[:length], self._start + offset)
                yield offset, staging, length

    def _read(self, view: memoryview, position: int) -> None:
        done = 0
        while done < len(view):
            num_read = os.preadv(self._disk.descriptor, [view[done:]], position + done)
            if num_read == 0:
                raise OSError(f"disk backup ends {len(view) - done} bytes early")
            done += num_read
