"""What runs beside the ranks of a node, noted while it runs. Standard library only.

A process that has ended keeps nothing that tells what it was: a zombie has no command line left,
and one that was reaped is not there at all. The sentinel therefore notes the processes of its run
as they come, in a small file beside the black boxes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

FILE = "processes.json"

ENGINE_PROGRAM = re.compile(
    r"sglang|vllm|engine_server|launch_server|api_server|rollout[._]engine", re.I
)
"""A command line that starts a rollout engine."""

_MAX_NOTED = 64
_MAX_LINE_BYTES = 2000
_EVERY_S = 5.0
# One that ended long before the stall was ended on purpose, or the job would not have gone on.
_RECENT_S = 600.0
# Engines take longer to start. What is over sooner is a tool, such as one that prints a version.
_LIVES_S = 20.0


class Noted(NamedTuple):
    """A process as it was while it ran.

    Attributes:
        pid: Its process id.
        parent: Its parent's.
        ticks: When it started (clock ticks since boot).
        words: Its command line.
        noted_s: When it was noted (monotonic, s).
        ended_s: When its end was noticed (monotonic, s); 0 while it runs.
    """

    pid: int
    parent: int
    ticks: int
    words: tuple[str, ...]
    noted_s: float = 0.0
    ended_s: float = 0.0


class Roster:
    """The engines of a run on this node and what they started, kept by the sentinel.

    Args:
        path: The file.
        run: Name of the run.
    """

    def __init__(self, path: str, run: str) -> None:
        self._path, self._mark = path, f"MILES_WATCHDOG_RUN={run}".encode()
        self._noted: dict[int, Noted] = {}
        self._known: set[int] = set()
        self._fresh: set[int] = set()
        self._next_s = 0.0

    def look(self, now_s: float, ranks: Collection[int]) -> None:
        """Note who has come and who has ended; costs next to nothing where nobody has.

        Args:
            now_s: Monotonic time (s).
            ranks: Process ids of the ranks of this node.
        """
        changed = self._note_ends(now_s)
        if now_s >= self._next_s:
            self._next_s = now_s + _EVERY_S
            changed = self._note_new(ranks, now_s) or changed
        if changed:
            self._write()

    def _note_ends(self, now_s: float) -> bool:
        ended = [
            one for one in self._noted.values() if not one.ended_s and not _runs(one.pid, one.ticks)
        ]
        for one in ended:
            self._noted[one.pid] = one._replace(ended_s=now_s)
        return bool(ended)

    def _note_new(self, ranks: Collection[int], now_s: float) -> bool:
        present = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        # Twice: between fork and exec a process has its parent's command line.
        looked_at = ((present - self._known) | self._fresh) & present - set(ranks)
        self._fresh = present - self._known
        self._known = present
        parents = {_parent(pid) for pid in ranks} - {0, 1}
        # A raylet starts the workers of all jobs.
        parents = {pid for pid in parents if _read(f"/proc/{pid}/comm") != b"raylet\n"}
        found = [self._noted_one(pid, parents, now_s) for pid in sorted(looked_at)]
        fresh = [one for one in found if one is not None and not self._has(one)]
        for one in fresh:
            self._noted[one.pid] = one
        for pid in list(self._noted)[:-_MAX_NOTED]:
            del self._noted[pid]
        return bool(fresh)

    def _has(self, one: Noted) -> bool:
        known = self._noted.get(one.pid)
        return known is not None and (known.ticks, known.words) == (one.ticks, one.words)

    def _noted_one(self, pid: int, parents: Collection[int], now_s: float) -> Noted | None:
        line = _read(f"/proc/{pid}/cmdline")[:_MAX_LINE_BYTES]
        if not ENGINE_PROGRAM.search(line.decode(errors="replace")):
            return None
        fields = _stat(pid)
        if len(fields) < 20 or fields[0] in (b"Z", b"X"):
            return None
        parent = int(fields[1])
        is_ours = parent in parents or parent in self._noted
        if not is_ours and self._mark not in _read(f"/proc/{pid}/environ").split(b"\0"):
            return None
        words = tuple(word.decode(errors="replace") for word in line.split(b"\0") if word)
        return Noted(pid, parent, int(fields[19]), words, now_s)

    def _write(self) -> None:
        unfinished = f"{self._path}.{os.getpid()}"
        try:
            with open(unfinished, "w") as file:
                json.dump(list(self._noted.values()), file)
            os.chmod(unfinished, 0o600)
            os.replace(unfinished, self._path)
        except OSError:
            return


def read_roster(path: str) -> tuple[Noted, ...]:
    """What the sentinel noted; () where there is nothing to read."""
    try:
        with open(path) as file:
            entries = json.load(file)
        return tuple(Noted(*entry)._replace(words=tuple(entry[3])) for entry in entries)
    except (OSError, ValueError, TypeError, IndexError):
        return ()


def missed(noted: Iterable[Noted], now_s: float) -> tuple[Noted, ...]:
    """The engines that ended a short while ago and were not started anew, oldest first.

    What an engine started is left out: a helper may end at any time.

    Args:
        noted: From `read_roster`.
        now_s: Monotonic time (s).
    """
    noted = tuple(noted)
    pids = {one.pid for one in noted}
    return tuple(
        one
        for one in sorted(noted, key=lambda one: one.ended_s)
        if one.ended_s
        and now_s - one.ended_s < _RECENT_S
        and one.ended_s - one.noted_s > _LIVES_S
        and one.parent not in pids
        and not any(_replaces(other, one) for other in noted)
    )


def _replaces(other: Noted, one: Noted) -> bool:
    """Whether it is the same program, started after the end of the first, on any port."""
    return other.ticks > one.ticks and not other.ended_s and _shape(other) == _shape(one)


def _shape(one: Noted) -> str:
    return re.sub(r"\d+", "0", " ".join(one.words))


def _runs(pid: int, ticks: int) -> bool:
    fields = _stat(pid)
    return len(fields) > 19 and fields[0] not in (b"Z", b"X") and int(fields[19]) == ticks


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def _stat(pid: int) -> list[bytes]:
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
