"""Black boxes that processes of this host left: who they were, also when they are gone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from watchdog.blackbox.reading import BlackBoxReading, read_blackbox
from watchdog.discovery.processes import Seen
from watchdog.errors import UnusableInputError

_SHARED_MEMORY = Path("/dev/shm")
_MAX_BOXES = 4096


@dataclass(frozen=True)
class Box:
    """One black box.

    Attributes:
        path: The file.
        reading: What it said when it was read.
    """

    path: Path
    reading: BlackBoxReading

    @property
    def pid(self) -> int:
        """Process id of its writer, 0 where it does not say."""
        pid = self.reading.identity.get("pid")
        return pid if isinstance(pid, int) else 0

    @property
    def run(self) -> str:
        """Name of the run that it belongs to."""
        return str(self.reading.identity.get("run") or "")

    def is_of(self, one: Seen) -> bool:
        """Whether this process wrote it, and not an earlier one with its pid."""
        return self.pid == one.pid and self.reading.identity.get("pid_started_ticks") == one.ticks


def boxes_of(everything: Mapping[int, Seen], host: str) -> tuple[Box, ...]:
    """The boxes in shared memory and in the run folders that processes name, of this host.

    Args:
        everything: The processes of the host; their environment tells where to look.
        host: Name of the host, as identities give it.
    """
    found: dict[tuple[int, object], Box] = {}
    for path in list(_files(everything))[:_MAX_BOXES]:
        try:
            box = Box(path, read_blackbox(path))
        except (UnusableInputError, OSError):
            continue
        if box.reading.identity.get("host") == host:
            found.setdefault((box.pid, box.reading.identity.get("pid_started_ticks")), box)
    return tuple(found.values())


def _files(everything: Mapping[int, Seen]) -> Iterable[Path]:
    own = os.stat("/proc/self/ns/pid").st_ino
    # The user and the namespace of process ids are part of the folder's name.
    yield from sorted(_SHARED_MEMORY.glob(f"miles-watchdog-*-{own}/*/*.blackbox"))
    for folder in sorted({_folder(one) for one in everything.values()} - {""}):
        yield from sorted(Path(folder).glob("*/ranks/*.blackbox"))


def _folder(one: Seen) -> str:
    folder = one.variable("MILES_WATCHDOG_DIR")
    return folder if os.path.isabs(folder) else ""
