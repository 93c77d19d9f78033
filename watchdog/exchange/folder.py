"""A board of files, for hosts that share the run folder (or for one host alone)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from watchdog.capture import bounded
from watchdog.exchange.board import BoardError

T = TypeVar("T")


class FolderBoard:
    """One file a note. Works on network file systems: needs rename and hard link, no locks."""

    name = "run folder"

    def __init__(self, folder: Path, *, timeout_s: float = 3.0) -> None:
        self._folder = folder
        self._timeout_s = timeout_s

    def put(self, key: str, value: bytes) -> None:
        """Write a note, or replace it in one step."""
        path = self._folder / key
        self._bounded(lambda: os.replace(_unfinished(path, value), path))

    def get(self, key: str) -> bytes | None:
        """Read a note; `None` if there is none."""
        return self._bounded(lambda: _read(self._folder / key))

    def has(self, key: str) -> bool:
        """Whether there is a note."""
        return self._bounded((self._folder / key).exists)

    def claim(self, key: str, value: bytes) -> bytes:
        """Write a note if there is none; returns what stands there then."""
        return self._bounded(lambda: _claim(self._folder / key, value))

    def _bounded(self, work: Callable[[], T]) -> T:
        # A file server that is gone blocks its callers for ever.
        try:
            return bounded.result(work, timeout_s=self._timeout_s)
        except OSError as error:  # TimeoutError is one
            raise BoardError(f"{self._folder}: {error.strerror or error}") from error


def _unfinished(path: Path, value: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    unfinished = unfinished.with_name(f"{unfinished.name}.{threading.get_native_id()}")
    try:
        unfinished.write_bytes(value)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    return unfinished


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _claim(path: Path, value: bytes) -> bytes:
    unfinished = _unfinished(path, value)
    try:
        os.link(unfinished, path)
    except FileExistsError:
        return path.read_bytes()
    finally:
        unfinished.unlink(missing_ok=True)
    return value
