"""A memory limit for one process, by a control group (version 1 or 2). Needs root."""

from __future__ import annotations

import os
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def can_limit_memory() -> bool:
    """Whether a control group with a memory limit can be made here."""
    version_1 = _ROOT / "memory"
    if version_1.is_dir():
        return os.access(version_1, os.W_OK)
    controllers = _ROOT / "cgroup.subtree_control"
    return os.access(controllers, os.W_OK) and "memory" in controllers.read_text().split()


def memory_cgroup(name: str, pid: int, room_bytes: int) -> Path:
    """Move a process into a new group; what it allocates from now on may not exceed the room.

    Memory that it has already stays charged where it was.

    Returns:
        The group's folder; `rmdir` it once the process has ended.
    """
    if (_ROOT / "memory").is_dir():
        group, limit = _ROOT / "memory" / name, "memory.limit_in_bytes"
    else:
        group, limit = _ROOT / name, "memory.max"
    group.mkdir()
    (group / limit).write_text(str(room_bytes))
    (group / "cgroup.procs").write_text(str(pid))
    return group
