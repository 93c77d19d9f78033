"""The process beside the ranks of a node: it sees what no thread of theirs can tell.

One a node and run. It maps the black boxes of the node, looks at them once a second, and holds a
descriptor of each process, so that it learns at once of its end and of how it ended. Where all
the ranks of its node have gone silent in a section that is past its deadline, it starts a
speaker, which reports for them; where they are silent and another node may wait for them, one
that leaves word of them. It ends with the last process of the run on this node, and
clears up what processes that were killed could not.

It has to stay small: standard library only, nothing of `watchdog` but what says so too, and the
work that needs more is done by a child that ends again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import select
import time
from collections.abc import Callable

from watchdog.guest.lost_time import LostTime
from watchdog.sentinel import endings, leavings, run_roster
from watchdog.sentinel.box import BOX_SUFFIX, Box
from watchdog.sentinel.leavings import ENDING_SUFFIX
from watchdog.sentinel.silence import ALL_SILENT, Silence
from watchdog.sentinel.speakers import Speakers

LOCK = "sentinel.lock"
ABORT = "abort.json"
LOST_S = "--lost-s"
TICK_S = 1.0
# Nobody may hold the lock for longer without a sign of life (s).
STALE_AFTER_S = 15.0
_FIRST_BOX_WITHIN_S = 60.0
_ABORT_GRACE_S = 4.0
# How a process ended may be told only once its parent has asked.
_ENDING_WITHIN_S = 3.0


class Sentinel:
    """The loop.

    Args:
        local: Folder of the node's black boxes, on this host.
        run_folder: `<dir>/<run>`.
        speaker: Command that reports for a rank; the path of its box is appended.
    """

    def __init__(self, local: str, run_folder: str, speaker: list[str]) -> None:
        self._local, self._run_folder = local, run_folder
        self._boxes: dict[str, Box] = {}
        run = os.path.basename(run_folder)
        self._roster = run_roster.Roster(os.path.join(local, run_roster.FILE), run)
        self._silence = Silence()
        self._speakers = Speakers(speaker)
        self._leaves_word = -1
        self._began_s = self._last_tick_s = time.monotonic()
        self._lost_time = LostTime()
        self._is_late = False
        self._has_seen_box = False
        # A box that cannot be read yet; none at all means that the process which started this one
        # has ended already and taken its box along.
        self._awaits_box = False
        self._lock = -1

    def take_lock(self) -> bool:
        """Become the sentinel of the node; false if there is one."""
        path = os.path.join(self._local, LOCK)
        try:
            self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        os.ftruncate(self._lock, 0)
        os.write(self._lock, f"{os.getpid()} {endings.start_ticks(os.getpid())}".encode())
        # A lock file that was replaced meanwhile guards nothing.
        try:
            return os.stat(path).st_ino == os.fstat(self._lock).st_ino
        except OSError:
            return False

    def run(self) -> None:
        """Watch until the last process has ended, then clear up."""
        while self.tick(time.monotonic()):
            alive = [b.descriptor for b in self._boxes.values() if self._is_watched(b)]
            poll = select.poll()
            for descriptor in alive:
                poll.register(descriptor, select.POLLIN)
            poll.poll(TICK_S * 1000)
        self._clear_up()

    def tick(self, now_s: float) -> bool:
        """Look once; returns whether there is anything left to look at."""
        os.utime(self._lock)
        is_awake = self._woke(now_s)
        self._find_boxes()
        for box in self._boxes.values():
            if not box.is_settled:
                self._look_at_end(box, now_s)
        ranks = [box.pid for box in self._boxes.values() if box.is_rank and not box.is_settled]
        self._roster.look(now_s, ranks)
        self._look_at_speakers(now_s)
        if is_awake and not os.path.exists(os.path.join(self._local, ABORT)):
            # Else the run is being ended: what is late or silent then is a consequence.
            self._speak(now_s)
            self._leave_word(now_s)
        self._abort()
        if not self._has_seen_box:
            return self._awaits_box and now_s < self._began_s + _FIRST_BOX_WITHIN_S
        # A speaker that still writes needs its sentinel no more, but the boxes that it reads.
        return bool(self._speakers) or not all(box.is_settled for box in self._boxes.values())

    def _woke(self, now_s: float) -> bool:
        """Count what was lost since the last look; whether ranks can be judged by this one.

        Ranks that were stopped along with this process need a moment to show that they are back.
        One only: a busy machine makes every look late.
        """
        slept_s = now_s - self._last_tick_s
        self._last_tick_s = now_s
        self._lost_time.woke(now_s, slept_s, TICK_S)
        was_late, self._is_late = self._is_late, slept_s > 2 * TICK_S
        return was_late or not self._is_late

    def _is_watched(self, box: Box) -> bool:
        return box.descriptor >= 0 and box.ended_s is None

    def _find_boxes(self) -> None:
        found = self._files_of_boxes()
        self._awaits_box = bool(found)
        for name, inode in found.items():
            known = self._boxes.get(name)
            if known is not None and known.inode == inode:
                continue
            try:
                box = Box(os.path.join(self._local, name))
            except (OSError, ValueError, KeyError, TypeError):
                continue  # being written, or gone again: there is a next time
            if known is not None:
                known.close()
            self._boxes[name] = box
            self._has_seen_box = True

    def _files_of_boxes(self) -> dict[str, int]:
        try:
            with os.scandir(self._local) as entries:
                return {e.name: e.inode() for e in entries if e.name.endswith(BOX_SUFFIX)}
        except OSError:
            return {}

    def _look_at_end(self, box: Box, now_s: float) -> None:
        if box.has_exited:
            # It said so itself, and is watched no more: what it does now is its own affair.
            box.is_settled = True
            return
        if box.ended_s is None:
            if box.is_alive:
                return
            box.ended_s = now_s
        status = endings.wait_status(box.pid, box.descriptor)
        if status is not None or now_s > box.ended_s + _ENDING_WITHIN_S:
            self._write_ending(box, status)
            box.is_settled = True

    def _write_ending(self, box: Box, status: int | None) -> None:
        ending = {
            "pid": box.pid,
            "ticks": box.ticks,
            "status": status,
            "text": endings.ending_text(status),
            "at_s": time.time(),
        }
        _write(os.path.join(self._local, box.name + ENDING_SUFFIX), json.dumps(ending))

    def _speak(self, now_s: float) -> None:
        """Start a speaker where a section is late and nobody here is able to say so."""
        ranks = [box for box in self._boxes.values() if box.is_rank and not box.has_exited]
        since_s = self._since(now_s)
        late = [(box, box.late_section(since_s)) for box in ranks]
        able = {place for box, place in late if place and not box.is_silent(since_s)}
        for box, place in late:
            if place is None or place in able or box.spoken_for == place:
                continue
            for other, same in late:
                if same == place:
                    other.spoken_for = place
            lost_s = self._lost_time.within_s(box.section_began_s, now_s)
            self._speakers.start(self._path(box), LOST_S, f"{lost_s:.1f}", place=place)

    def _look_at_speakers(self, now_s: float) -> None:
        for failed in self._speakers.look(now_s):
            for box in self._boxes.values():
                box.spoken_for = None if box.spoken_for == failed else box.spoken_for

    def _path(self, box: Box) -> str:
        return os.path.join(self._local, box.name + BOX_SUFFIX)

    def _since(self, now_s: float) -> Callable[[float], float]:
        return lambda began_s: now_s - began_s - self._lost_time.within_s(began_s, now_s)

    def _leave_word(self, now_s: float) -> None:
        """Start a speaker that tells other nodes what is seen of ranks that all are silent."""
        ranks = [box for box in self._boxes.values() if box.is_rank]
        silent = [box for box in ranks if not box.has_exited]
        if not silent or self._leaves_word in self._speakers:
            return
        num_ended = sum(box.is_settled for box in silent)
        last_s = max((b.last_sign_s for b in silent if not b.is_settled), default=-math.inf)
        is_due = self._silence.is_to_be_told(self._since(now_s)(last_s), num_ended)
        if is_due and len(ranks) < max(box.world_size for box in silent):
            self._leaves_word = self._speakers.start(self._path(silent[0]), ALL_SILENT)

    def _abort(self) -> None:
        """End those who were to end themselves and cannot: stopped, or the GIL held."""
        try:
            with open(os.path.join(self._local, ABORT), "rb") as file:
                order = json.loads(file.read())
                is_due = time.time() > os.fstat(file.fileno()).st_mtime + _ABORT_GRACE_S
        except (OSError, ValueError):
            return
        if not is_due:
            return
        targets = [(box.pid, box.ticks) for box in self._boxes.values() if not box.is_settled]
        for pid, ticks in [*targets, *order.get("others", [])]:
            if endings.start_ticks(pid) == ticks:
                endings.kill(pid)

    def _clear_up(self) -> None:
        leavings.clear_up(self._local, self._run_folder, self._boxes.values())
        for box in self._boxes.values():
            box.close()


def _write(path: str, text: str) -> None:
    unfinished = f"{path}.{os.getpid()}"
    try:
        with open(unfinished, "w") as file:
            file.write(text)
        os.replace(unfinished, path)
    except OSError:
        leavings.unlink(unfinished)


def main(arguments: list[str]) -> None:
    """Be the sentinel: `<local folder> <run folder> <speaker command as JSON>`."""
    local, run_folder, speaker = arguments
    os.chdir("/")
    close_inherited()
    sentinel = Sentinel(local, run_folder, json.loads(speaker))
    if sentinel.take_lock():
        sentinel.run()


def close_inherited() -> None:
    """Close what the process that started this one had opened: a file, a device, a pipe."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            # One of them was the listing's own.
            with contextlib.suppress(OSError):
                os.close(int(name))
