"""What there is to read: files, folders, archives. Nothing here blocks or follows a trap."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from watchdog.errors import UnusableInputError
from watchdog.intake.parts import Parts

MAX_FILES = 20_000
MAX_DEPTH = 32
# Never part of what somebody hands over, and sometimes large.
_SKIPPED_FOLDERS = frozenset({".git", "__pycache__", "node_modules", ".venv"})


def open_regular(path: str | Path) -> BinaryIO:
    """Open for reading; refuses what is not a regular file, without ever blocking.

    Raises:
        OSError: It cannot be opened, or is a pipe, socket, folder or device.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(f"is a {_what(mode)}, not a regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def regular_text(path: str | Path, max_bytes: int) -> str:
    """All of a regular file as text, bytes that are no UTF-8 replaced.

    Raises:
        OSError: It cannot be opened, is no regular file, or is larger than `max_bytes`.
    """
    with open_regular(path) as stream:
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(f"is larger than {max_bytes >> 20} MiB, too large for what it should be")
    return data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Source:
    """One thing to read.

    Attributes:
        name: How the report calls it: the path as given, relative inside folders.
        path: Where it lies.
        size: Bytes on disk.
    """

    name: str
    path: Path
    size: int

    def open(self) -> BinaryIO:
        """Open for reading; refuses what is not a regular file, without ever blocking.

        Raises:
            OSError: It cannot be opened, or is a pipe, socket or device.
        """
        return open_regular(self.path)


class Progress(Protocol):
    """Hears how far the reading is."""

    def __call__(self, name: str, done_bytes: int, total_bytes: int) -> None:
        """Called now and then with the file being read and the bytes of all files."""
        ...


def sources_of(paths: Sequence[str | Path], parts: Parts) -> list[Source]:
    """All regular files under the paths, in order of name; what was left out becomes a gap.

    Links to folders are not followed below the given paths, so no loop is possible; each file is
    read once although several paths reach it.

    Raises:
        UnusableInputError: A path does not exist.
    """
    found: list[Source] = []
    seen: set[tuple[int, int]] = set()
    for given in paths:
        path = Path(given)
        if not os.path.lexists(path):
            raise UnusableInputError(f"{path}: no such file or folder")
        for name, file in _walk(path, parts):
            source = _source(name, file, parts, seen)
            if source is None:
                continue
            if len(found) >= MAX_FILES:
                parts.add_gap("further files", f"only the first {MAX_FILES} are read")
                return found
            found.append(source)
    return found


def _walk(path: Path, parts: Parts) -> Iterator[tuple[str, Path]]:
    if not path.is_dir():
        yield path.name, path
        return
    if os.path.realpath(path).startswith("/proc/"):
        parts.add_gap(
            str(path), "a folder of /proc: some files there have no end; name those to read"
        )
        return
    base_depth = len(path.parts)
    for folder, folders, files in os.walk(path, onerror=lambda error: _refused(error, parts)):
        here = Path(folder)
        depth = len(here.parts) - base_depth
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS) if depth < MAX_DEPTH else []
        for file in sorted(files):
            yield str((here / file).relative_to(path)), here / file


def _refused(error: OSError, parts: Parts) -> None:
    parts.add_gap(str(error.filename or "a folder"), error.strerror or "cannot be listed")


def _source(name: str, path: Path, parts: Parts, seen: set[tuple[int, int]]) -> Source | None:
    try:
        about = path.stat()
    except OSError as error:
        parts.add_gap(name, f"cannot be read: {error.strerror or error}")
        return None
    if not stat.S_ISREG(about.st_mode):
        parts.add_gap(name, f"is a {_what(about.st_mode)}, not a file: not opened")
        return None
    if (about.st_dev, about.st_ino) in seen:
        return None
    seen.add((about.st_dev, about.st_ino))
    return Source(name.encode("utf-8", "replace").decode("utf-8"), path, about.st_size)


def _what(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "named pipe"
    if stat.S_ISSOCK(mode):
        return "socket"
    if stat.S_ISDIR(mode):
        return "folder"
    return "device"
