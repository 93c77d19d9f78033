"""What killed runs left in shared memory: moved into their run folders, or removed at last.

A killed or aborted rank cannot clear up; its black box would take memory until the host
restarts. Every rank that starts looks for such runs. One with a process or a sentinel that
lives is never touched: the sentinel reads the boxes of the dead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from watchdog.blackbox.reading import BlackBoxReading, read_blackbox
from watchdog.errors import WatchdogError
from watchdog.process_identity import started_ticks
from watchdog.sentinel import leavings
from watchdog.sentinel.sentinel import LOCK

SUFFIX = ".blackbox"
MAX_KEPT = 20
"""Dead runs that stay in shared memory because their run folders refuse them; 0.4 MB a rank."""

# A run begins with an empty folder.
_YOUNG_S = 600.0
_MAX_SECONDS = 2.0


def settle(root: Path, *, max_kept: int = MAX_KEPT) -> None:
    """Move the black boxes of dead runs into their run folders. Never raises.

    Takes a bounded time; what is left is the next one's.

    Args:
        root: Folder in shared memory with one subfolder a run.
        max_kept: Dead runs to keep where that fails; the oldest beyond are removed.
    """
    deadline_s = time.monotonic() + _MAX_SECONDS
    refused = []
    for run in _oldest_first(root):
        if time.monotonic() > deadline_s:
            return
        with contextlib.suppress(OSError):
            if is_dead(run) and not _moved(run):
                refused.append(run)
    for run in refused[: max(0, len(refused) - max_kept)]:
        # It may have been started again meanwhile.
        with contextlib.suppress(OSError):
            if is_dead(run):
                remove(run)


def is_dead(run: Path) -> bool:
    """Whether no process and no sentinel of the run lives. In doubt it is not.

    Args:
        run: Its folder in shared memory.
    """
    if sentinel_lives(run):
        return False
    readings = list(_readings(run).values())
    if not readings:
        return time.time() - run.stat().st_mtime > _YOUNG_S
    return not any(lives(reading) for reading in readings)


def lives(reading: BlackBoxReading) -> bool:
    """Whether the process that a box belongs to still runs on this host."""
    pid, ticks = reading.identity.get("pid"), reading.identity.get("pid_started_ticks")
    return isinstance(pid, int) and started_ticks(pid) == ticks != 0


def sentinel_lives(run: Path) -> bool:
    """Whether the run has a sentinel on this host.

    Args:
        run: Its folder in shared memory.
    """
    try:
        pid, ticks = map(int, (run / LOCK).read_text().split())
    except (OSError, ValueError):
        return False
    return started_ticks(pid) == ticks != 0


def remove(run: Path) -> None:
    """Remove the run's folder in shared memory with the files in it; nothing below a subfolder.

    Raises:
        OSError: Some of it stays.
    """
    for path in run.iterdir():
        path.unlink(missing_ok=True)
    run.rmdir()


def _oldest_first(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            folders = [e for e in entries if e.is_dir(follow_symlinks=False)]
            return [Path(e.path) for e in sorted(folders, key=lambda e: e.stat().st_mtime)]
    except OSError:
        return []


def _readings(run: Path) -> dict[Path, BlackBoxReading]:
    found = {}
    for path in run.glob(f"*{SUFFIX}"):
        with contextlib.suppress(WatchdogError):
            found[path] = read_blackbox(path, with_events=False)
    return found


def _moved(run: Path) -> bool:
    """Whether all boxes are where they belong; the run's folder is then gone."""
    for box, reading in _readings(run).items():
        try:
            _move(box, Path(str(reading.identity.get("run_folder", ""))))
        except OSError:
            return False
    remove(run)
    return True


def _move(box: Path, run_folder: Path) -> None:
    """Put the box in place of the link to it, and how its process ended, if a sentinel saw it.

    Both are dropped where nobody links to the box any more.
    """
    link, ending = run_folder / "ranks" / box.name, box.with_suffix(leavings.ENDING_SUFFIX)
    if link.is_symlink() and os.readlink(link) == str(box):
        _copy(box, link)
        with contextlib.suppress(FileNotFoundError):
            _copy(ending, link.with_name(ending.name))
        _remove_if_empty(link.with_suffix(".faulthandler"))
        leavings.unlink_locks(str(run_folder / "incidents"))
    box.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(source, unfinished)
    os.replace(unfinished, target)


def _remove_if_empty(traceback_file: Path) -> None:
    # A killed rank leaves the file that its C timer would have written to.
    with contextlib.suppress(OSError):
        if traceback_file.stat().st_size == 0:
            traceback_file.unlink()
