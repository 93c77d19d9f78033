"""One process of the node, as the sentinel sees it through its black box. Standard library only."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable

from watchdog.blackbox import layout
from watchdog.sentinel import endings

BOX_SUFFIX = ".blackbox"
# A watchdog thread beats every second at least.
_SILENT_AFTER_S = 3.0
# Ranks that can speak have so long to do it (s).
_GRACE_S = 2.0


class Box:
    """One process of the node, through its black box.

    Attributes:
        name: Its name in `ranks/`: the rank, or role and pid.
        pid: Its process id.
        ticks: When it started (clock ticks since boot).
        descriptor: Readable once it has ended; -1 where there is none.
        ended_s: When its end was seen (monotonic, s), `None` before.
        is_settled: Whether all is done about its end.
    """

    def __init__(self, path: str) -> None:
        self.name = os.path.basename(path)[: -len(BOX_SUFFIX)]
        with open(path, "rb") as file:
            self._memory = mmap.mmap(file.fileno(), layout.SIZE, prot=mmap.PROT_READ)
        self.inode = os.stat(path).st_ino
        identity = self._identity()
        self.pid = int(str(identity["pid"]))
        self.ticks = int(str(identity["pid_started_ticks"]))
        self.is_rank = identity.get("role") == "trainer" and identity.get("rank") is not None
        self.descriptor = endings.open_process(self.pid, self.ticks)
        self.ended_s: float | None = None
        self.is_settled = False
        self.spoken_for: tuple[int, int] | None = None

    @property
    def has_exited(self) -> bool:
        """Whether it said itself that it ends."""
        return bool(layout.STATE.unpack_from(self._memory, layout.STATE_AT)[0] == layout.EXITED)

    @property
    def is_alive(self) -> bool:
        """Whether the process still is."""
        return endings.start_ticks(self.pid) == self.ticks

    @property
    def world_size(self) -> int:
        """Ranks of the job, 0 where it does not know (yet)."""
        try:
            return int(str(self._identity().get("world_size") or 0))
        except ValueError:  # it is being rewritten
            return 0

    @property
    def last_sign_s(self) -> float:
        """When its watchdog thread last ran (monotonic, s), at first when the box was made."""
        (beat_s,) = layout.HEARTBEAT.unpack_from(self._memory, layout.HEARTBEAT_AT)
        made_s = layout.HEADER.unpack_from(self._memory, 0)[3]
        return float(max(beat_s, made_s))

    def is_silent(self, since_s: Callable[[float], float]) -> bool:
        """Whether its watchdog thread does not run, or never came to.

        Args:
            since_s: Time since a moment (monotonic, s) in which it could have run (s).
        """
        (beat_s,) = layout.HEARTBEAT.unpack_from(self._memory, layout.HEARTBEAT_AT)
        return since_s(beat_s) > _SILENT_AFTER_S

    def late_section(self, since_s: Callable[[float], float]) -> tuple[int, int] | None:
        """Text number and index of a section that is past its deadline, else `None`.

        Args:
            since_s: Time since a moment (monotonic, s) in which it could have gone on (s).
        """
        values = layout.SECTION.unpack_from(self._memory, layout.SECTION_AT)
        name, _, index, began_s, _, deadline_s = values[1:7]
        is_whole = values[0] == values[-1]
        is_late = is_whole and name and since_s(began_s) > deadline_s + _GRACE_S
        return (int(name), int(index)) if is_late else None

    @property
    def section_began_s(self) -> float:
        """When the section that it is in was entered (monotonic, s)."""
        return float(layout.SECTION.unpack_from(self._memory, layout.SECTION_AT)[4])

    def close(self) -> None:
        """Let go of the descriptor and the map."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self._memory.close()

    def _identity(self) -> dict[str, object]:
        (length,) = layout.IDENTITY_LENGTH.unpack_from(self._memory, layout.IDENTITY_AT)
        start = layout.IDENTITY_AT + layout.IDENTITY_LENGTH.size
        data = bytes(self._memory[start : start + length])
        return dict(json.loads(data))
