"""The folder that is used where the one that was asked for cannot be had."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from watchdog.run.incident_ids import slug

_MAX_NAME_BYTES = 255
# The kernel's bound for a path, less what an incident adds below the folder of its run.
_MAX_PATH_BYTES = 4096 - 400


def substitute_root() -> Path:
    """Where substitutes lie, below the folder for temporary files; it need not exist."""
    return Path(tempfile.gettempdir()) / f"miles-watchdog-{os.getuid()}"


def substitute_of(run_folder: Path) -> Path:
    """What is used in place of a run's folder; it need not exist.

    Args:
        run_folder: `<dir>/<run>`.
    """
    return substitute_root() / slug(run_folder.name)


def refusal(folder: Path) -> str:
    """Why no folder can be made or filled there, "" where one can.

    What exists of its path is tried with an empty folder that is removed at once: permissions
    alone say nothing of a read-only mount, or to root.
    """
    path = Path(os.path.abspath(os.path.expanduser(folder)))
    if is_too_long(path):
        return "the name is too long"
    try:
        nearest = next(each for each in (path, *path.parents) if os.path.lexists(each))
        with tempfile.TemporaryDirectory(prefix=".miles-watchdog-", dir=nearest):
            return ""
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)


def is_too_long(path: Path) -> bool:
    """Whether no file system would take such a path, or what lies below it."""
    longest = max(len(os.fsencode(part)) for part in path.parts)
    return longest > _MAX_NAME_BYTES or len(os.fsencode(path)) > _MAX_PATH_BYTES


def is_ours(folder: Path) -> bool:
    """Whether the folder is this user's alone to replace; created where it is missing.

    Where all may write, a name may be taken by somebody else.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
