"""What processes that were killed left behind, cleared up by their sentinel.

Standard library only. The black box of a process that did not end by itself stays, with how it
ended, in the run folder; so does a stack that its C timer wrote. All else goes.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from watchdog.blackbox import layout
from watchdog.sentinel.box import BOX_SUFFIX, Box
from watchdog.sentinel.endings import start_ticks

ENDING_SUFFIX = ".ending"
TRACEBACK_SUFFIX = ".faulthandler"
REPORT = "report.json"
_LOCK_SUFFIX = ".lock"


def clear_up(local: str, run_folder: str, boxes: Collection[Box]) -> None:
    """Leave nothing in memory, and in the run folder only what tells of the killed. Never raises.

    Args:
        local: Folder of the node's black boxes, on this host.
        run_folder: `<dir>/<run>`.
        boxes: Of processes that all have ended.
    """
    ranks = os.path.join(run_folder, "ranks")
    if os.path.realpath(ranks) != os.path.realpath(local):
        for box in boxes:
            _settle(box, local, ranks)
    for box in boxes:
        _unlink_empty(os.path.join(ranks, box.name + TRACEBACK_SUFFIX))
    for name in _names(local):
        # Locks, the order to end, and notes that are of no use without the processes.
        if name.endswith((_LOCK_SUFFIX, ".json")) or _is_unfinished(name):
            unlink(os.path.join(local, name))
    unlink_locks(os.path.join(run_folder, "incidents"))
    for folder in (local, os.path.dirname(local), ranks, run_folder, os.path.dirname(run_folder)):
        try:
            os.rmdir(folder)
        except OSError:
            continue


def unlink(path: str) -> None:
    """Remove a file, if it is there and can be."""
    try:
        os.unlink(path)
    except OSError:
        return


def unlink_locks(incidents: str) -> None:
    """Remove the locks by which a leader was found, of incidents that are reported. Never raises.

    Args:
        incidents: `<dir>/<run>/incidents`; it may be missing.
    """
    for incident in _names(incidents):
        folder = os.path.join(incidents, incident)
        if os.path.exists(os.path.join(folder, REPORT)):
            for name in _names(folder):
                if name.endswith(_LOCK_SUFFIX):
                    unlink(os.path.join(folder, name))


def _settle(box: Box, local: str, ranks: str) -> None:
    """Take a box out of memory: into the run folder, unless its process ended by itself."""
    path, link = (os.path.join(folder, box.name + BOX_SUFFIX) for folder in (local, ranks))
    ending = os.path.join(local, box.name + ENDING_SUFFIX)
    if not box.has_exited:
        _keep(path, ranks)
        _keep(ending, ranks)
    unlink(path)
    unlink(ending)
    if os.path.islink(link) and os.readlink(link) == path:
        unlink(link)


def _keep(path: str, folder: str) -> None:
    target = os.path.join(folder, os.path.basename(path))
    unfinished = f"{target}.{os.getpid()}"
    try:
        with open(path, "rb") as source, open(unfinished, "wb") as copy:
            copy.write(source.read(layout.SIZE))
        os.replace(unfinished, target)
    except OSError:
        unlink(unfinished)


def _unlink_empty(path: str) -> None:
    try:
        if os.path.getsize(path) == 0:
            os.unlink(path)
    except OSError:
        return


def _is_unfinished(name: str) -> bool:
    """Whether a process was killed while it wrote this: `.0.blackbox.4711`."""
    pid = name.rpartition(".")[2]
    return pid.isdigit() and start_ticks(int(pid)) == 0


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
