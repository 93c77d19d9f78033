"""A file descriptor that is used only as long as it is still ours.

A host may close all descriptors above 2, as daemons do, and open files of its own: their numbers
are those that ours had.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path


class OwnDescriptor:
    """A file that is kept open, never as standard input, output or error.

    Args:
        path: The file.
        flags: As of `os.open`; a program that is started does not inherit it.
        mode: Permissions of a new file.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path, flags: int, mode: int = 0o644) -> None:
        self._number = above_standard(os.open(path, flags | os.O_CLOEXEC, mode))
        self._file = _file_of(self._number)

    @property
    def number(self) -> int:
        """The descriptor, -1 where the number is no longer ours."""
        if self._number >= 0 and _file_of(self._number) != self._file:
            self._number = -1
        return self._number

    def close(self) -> None:
        """Close it, if it is ours."""
        number, self._number = self.number, -1
        if number >= 0:
            os.close(number)


def above_standard(descriptor: int) -> int:
    """The same file at a number above 2, where others do not take it for a standard stream."""
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


def _file_of(descriptor: int) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino
    return None
