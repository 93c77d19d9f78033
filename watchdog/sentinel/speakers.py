"""The children by which a sentinel speaks for ranks that cannot. Standard library only."""

from __future__ import annotations

import os

from watchdog.sentinel import endings

_STOPPED_TOO_LONG_S = 15.0
_MAX_FAILURES = 4


class Speakers:
    """They are started, looked at, and replaced where they died in the middle.

    Args:
        command: What one is started by; the path of a rank's box and options are appended.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._places: dict[int, tuple[int, int] | None] = {}
        self._stopped_since_s: dict[int, float] = {}
        self._num_failures = 0

    def __bool__(self) -> bool:
        """Whether one still speaks."""
        return bool(self._places)

    def __contains__(self, pid: int) -> bool:
        """Whether that one still speaks."""
        return pid in self._places

    def start(self, box: str, *options: str, place: tuple[int, int] | None = None) -> int:
        """Have one speak for a rank.

        Args:
            box: Path of its black box.
            options: As the speaker takes them.
            place: Text number and index of the section that is to be reported, if it is one.

        Returns:
            Its process id, -1 where none could be started.
        """
        command = [*self._command, box, *options]
        try:
            pid = os.posix_spawn(command[0], command, os.environ, setsid=True)
        except OSError:
            return -1
        self._places[pid] = place
        return pid

    def look(self, now_s: float) -> set[tuple[int, int]]:
        """Reap those that have ended, and end those that somebody stopped.

        Args:
            now_s: Monotonic time (s).

        Returns:
            The places for which another one has to speak, as one failed or was killed.
        """
        failed = set()
        for pid, place in list(self._places.items()):
            if self._is_stopped_too_long(pid, now_s):
                endings.kill(pid)
            status = endings.status_of_child(pid)
            if status is None:
                continue
            del self._places[pid]
            if status and place is not None:
                failed.add(place)
                self._num_failures += 1
        return failed if self._num_failures < _MAX_FAILURES else set()

    def _is_stopped_too_long(self, pid: int, now_s: float) -> bool:
        if not endings.is_stopped(pid):
            self._stopped_since_s.pop(pid, None)
            return False
        return now_s - self._stopped_since_s.setdefault(pid, now_s) > _STOPPED_TOO_LONG_S
