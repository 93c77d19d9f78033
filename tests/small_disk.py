"""A disk that really fills up: a small file system of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

_FILLING = "filling"


class SmallDisk:
    """A folder on a file system of a few megabytes, where one may be mounted (as root).

    Attributes:
        folder: Where it is; an ordinary folder where nothing may be mounted.
        is_there: Whether it is one.
    """

    def __init__(self, folder: Path, *, size: str = "4m", num_files: int = 4000) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        options = f"size={size},nr_inodes={num_files}"
        self.is_there = os.getuid() == 0 and _mount("-t", "tmpfs", "-o", options, "none", folder)

    def fill(self) -> None:
        """Leave no room in it, down to the last page."""
        if not self.is_there:
            return
        with contextlib.suppress(OSError), open(self.folder / _FILLING, "ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def refuse(self) -> None:
        """Let nobody write to it any more."""
        # In vain while a file is open for writing: then there is a next time.
        if self.is_there:
            any(_mount("-o", "remount,ro", self.folder) for _ in range(100))

    def recover(self) -> None:
        """Take files again."""
        if self.is_there:
            _mount("-o", "remount,rw", self.folder)
            (self.folder / _FILLING).unlink(missing_ok=True)

    def remove(self) -> None:
        """Take it away, whoever still has a file of it open."""
        if self.is_there:
            subprocess.run(["umount", "-l", str(self.folder)], timeout=60, check=True)


def _mount(*arguments: str | Path) -> bool:
    command = ["mount", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
