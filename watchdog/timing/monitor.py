"""The thread that notices: it looks at the open section a few times a second.

It asks nothing of the training thread, which may hang: it reads what the recorder holds. What
takes long (samples, reports) runs on the worker, so the heartbeat says that this thread lives,
and sees to it that the worker does.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchdog.guest.lost_time import LostTime
from watchdog.guest.notices import notice_once
from watchdog.guest.own_threads import mark_this_thread
from watchdog.guest.worker import IncidentWorker, run_guarded
from watchdog.process_identity import ProcessIdentity
from watchdog.recording.recorder import FinishedSection, OpenCollective, OpenSection, Recorder
from watchdog.run.incident_ids import incident_id
from watchdog.run.one_voice import NO_MORE_INCIDENTS, is_first_to_say
from watchdog.settings import Settings
from watchdog.timing.clock import Clock, SystemClock
from watchdog.timing.deadlines import COLLECTIVE, Deadlines
from watchdog.timing.stall_context import StallContext

THREAD_NAME = "weight-sync-watchdog"
_SHORTEST_TICK_S = 0.02
_LONGEST_TICK_S = 0.5
_FIRST_SAMPLE_SHARE = 0.6
_FIRST_SAMPLE_LEAD_S = 10.0
# A thread beside the main one that waits in one of these listens for commands: it may for ever.
POINT_TO_POINT = frozenset(
    {"send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list", "recv_object_list"}
)
_DEBUGGERS = ("pdb", "bdb", "ipdb", "pydevd", "debugpy", "_pydevd_bundle")


@dataclass
class _Watched:
    """One section or collective on its own that is being timed."""

    key: tuple[object, ...]
    name: str
    index: int
    began_s: float
    deadline_s: float
    reason: str
    thread_id: int
    native_thread_id: int
    is_suspected: bool = False
    is_stalled: bool = False
    first_sample: Any = None


@dataclass(frozen=True)
class Hooks:
    """What the monitor calls.

    Attributes:
        on_stall: Called at the deadline, on the worker.
        on_suspicion: Called some time before, on the worker; returns the first sample.
        on_finished: Called for each section that has ended, with the id of its incident if it
            had stalled; on the monitor's own thread, so it must not block.
        on_late: Called once a deadline has passed; likewise.
    """

    on_stall: Callable[[StallContext], None]
    on_suspicion: Callable[[StallContext], Any] | None = None
    on_finished: Callable[[FinishedSection, str | None], None] | None = None
    on_late: Callable[[], None] | None = None


class Monitor:
    """Times the sections of one process.

    Args:
        settings: All settings.
        recorder: What the training thread writes.
        hooks: What to call.
        deadlines: How long sections may take.
        identity: Says what is known about this process by now.
        run_folder: `<dir>/<run>`.
        clock: Where the time comes from.
        submit: Runs a task elsewhere; the worker's `submit`, or a plain call in tests.
    """

    def __init__(
        self,
        settings: Settings,
        recorder: Recorder,
        hooks: Hooks,
        *,
        deadlines: Deadlines,
        identity: Callable[[], ProcessIdentity],
        run_folder: Path,
        clock: Clock | None = None,
        submit: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._settings = settings
        self._recorder = recorder
        self._hooks = hooks
        self._deadlines = deadlines
        self._identity = identity
        self._run_folder = run_folder
        self._clock = clock or SystemClock()
        self._worker = IncidentWorker()
        self._submit = submit or self._worker.submit
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._watched: tuple[_Watched, ...] = ()
        self._stalled_sections: dict[tuple[str, int], str] = {}
        self._num_stalls: dict[str, int] = {}
        self._last_tick_s = self._clock.now_s()
        self._is_late = False
        self._lost_time = LostTime()

    def start(self) -> None:
        """Start the thread; it never keeps the process alive."""
        thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        thread.start()
        self._thread = thread

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the thread; let a report that is being written finish, no longer than this (s)."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)
            run_guarded(self._drain)
        self._worker.stop(timeout_s)

    def tick(self) -> None:
        """Look once."""
        now_s = self._clock.now_s()
        slept_s = now_s - self._last_tick_s
        self._last_tick_s = now_s
        self._lost_time.woke(now_s, slept_s, self.tick_s())
        # Without a worker nothing is reported here: silence has the sentinel do it.
        if self._worker.keep():
            self._recorder.heartbeat(now_s)
        self._drain()
        # Stopped, suspended or starved of the GIL: training could not go on either, so it gets
        # one more tick before it is judged. One only: a busy machine makes every tick late.
        was_late, self._is_late = self._is_late, slept_s > max(1.0, 4 * self.tick_s())
        if self._is_late and not was_late:
            return
        self._watched = self._what_is_open()
        for watched in self._watched:
            if not watched.is_stalled:
                waited_s = now_s - watched.began_s
                self._judge(watched, waited_s - self._lost_time.within_s(watched.began_s, now_s))

    def tick_s(self) -> float:
        """Time between two looks (s): a twentieth of the deadline, within 0.02 and 0.5."""
        given_s = self._settings.stall_after_s or 20 * _LONGEST_TICK_S
        deadline_s = min([given_s, *(watched.deadline_s for watched in self._watched)])
        return min(max(deadline_s / 20, _SHORTEST_TICK_S), _LONGEST_TICK_S)

    def _run(self) -> None:
        mark_this_thread()
        while not self._clock.wait(self._stopping, self.tick_s()):
            run_guarded(self.tick)

    def _judge(self, watched: _Watched, waited_s: float) -> None:
        if waited_s >= watched.deadline_s:
            # The report of a stall that goes on shows all threads; only what the main thread
            # waits for deserves one of its own.
            is_covered = not _is_main(watched) and any(one.is_stalled for one in self._watched)
            watched.is_stalled = True
            if not is_covered:
                self._stalled(watched, waited_s)
        elif not watched.is_suspected and waited_s >= _first_sample_at_s(watched.deadline_s):
            watched.is_suspected = True
            self._suspected(watched, waited_s)

    def _suspected(self, watched: _Watched, waited_s: float) -> None:
        on_suspicion = self._hooks.on_suspicion
        if on_suspicion is None or self._is_full(watched) or _in_debugger(watched.thread_id):
            return
        context = self._context(watched, waited_s)

        def take() -> None:
            watched.first_sample = on_suspicion(context)

        self._submit(take)

    def _stalled(self, watched: _Watched, waited_s: float) -> None:
        if self._hooks.on_late is not None:
            run_guarded(self._hooks.on_late)
        if _in_debugger(watched.thread_id):
            self._recorder.note("stall ignored: the thread is in a debugger")
            notice_once("debugger", "a debugger is active: stalls are not reported meanwhile")
            return
        self._recorder.stall_counted()
        if self._is_full(watched):
            self._submit(self._say_that_it_is_full)
            return
        self._num_stalls[watched.name] = self._num_stalls.get(watched.name, 0) + 1
        if watched.name == COLLECTIVE:
            watched.index = self._num_stalls[COLLECTIVE]
        context = self._context(watched, waited_s)
        self._stalled_sections[(watched.name, watched.index)] = context.incident_id
        self._submit(lambda: self._hooks.on_stall(self._context(watched, waited_s)))

    def _say_that_it_is_full(self) -> None:
        if is_first_to_say(NO_MORE_INCIDENTS, self._run_folder):
            most = self._settings.max_incidents
            notice_once("incidents", f"{most} incidents of this run are reported; no more will be")

    def _is_full(self, watched: _Watched) -> bool:
        return sum(self._num_stalls.values()) >= self._settings.max_incidents

    def _context(self, watched: _Watched, waited_s: float) -> StallContext:
        section = self._recorder.open_section
        collective = self._recorder.open_collectives.get(watched.thread_id)
        phase = section.phase if section is not None else ""
        if watched.name == COLLECTIVE and collective is not None:
            phase = collective[0]
        return StallContext(
            section=watched.name,
            index=watched.index,
            waited_s=waited_s,
            deadline_s=watched.deadline_s,
            deadline_reason=watched.reason,
            phase=phase,
            identity=self._identity(),
            run_folder=self._run_folder,
            incident_id=incident_id(watched.name, watched.index),
            settings=self._settings,
            blackbox=self._recorder.blackbox_path,
            thread_id=watched.thread_id,
            native_thread_id=watched.native_thread_id,
            first_sample=watched.first_sample,
            is_over=lambda: self._is_over(watched),
        )

    def _is_over(self, watched: _Watched) -> bool:
        section = self._recorder.open_section
        if watched.name != COLLECTIVE:
            return section is None or (section.name, section.index) != watched.key
        # Another thread, or the same one in its next call, is not what had stalled.
        collective = self._recorder.open_collectives.get(watched.thread_id)
        return collective is None or collective[1] != watched.began_s

    def _what_is_open(self) -> tuple[_Watched, ...]:
        section = self._recorder.open_section
        if section is not None:
            return (self._same_or_new(_watched_section(section)),)
        if self._identity().role != "trainer":
            # An engine's workers wait in a collective whenever nothing is asked of them.
            return ()
        found = [
            self._same_or_new(self._watched_collective(thread_id, OpenCollective(*fields)))
            for thread_id, fields in list(self._recorder.open_collectives.items())
            if not (fields[0] in POINT_TO_POINT and thread_id != _main_thread_id())
        ]
        return tuple(sorted(found, key=lambda one: (not _is_main(one), one.began_s)))

    def _same_or_new(self, found: _Watched) -> _Watched:
        return next((known for known in self._watched if known.key == found.key), found)

    def _watched_collective(self, thread_id: int, collective: OpenCollective) -> _Watched:
        timeout_s = collective.group.timeout_s if collective.group is not None else None
        deadline_s, reason = self._deadlines.of_collective(collective.op, timeout_s or None)
        return _Watched(
            key=(COLLECTIVE, thread_id, collective.began_s),
            name=COLLECTIVE,
            index=self._num_stalls.get(COLLECTIVE, 0) + 1,
            began_s=collective.began_s,
            deadline_s=deadline_s,
            reason=reason,
            thread_id=thread_id,
            native_thread_id=_native_id(thread_id),
        )

    def _drain(self) -> None:
        finished_sections = self._recorder.finished_sections
        while finished_sections:
            finished = finished_sections.popleft()
            section = finished.section
            if not finished.raised:
                lost_s = self._lost_time.within_s(section.began_s, finished.ended_s)
                took_s = finished.ended_s - section.began_s - lost_s
                self._deadlines.learn(section.name, took_s)
            incident = self._stalled_sections.pop((section.name, section.index), None)
            if self._hooks.on_finished is not None:
                self._hooks.on_finished(finished, incident)


def _watched_section(section: OpenSection) -> _Watched:
    return _Watched(
        key=(section.name, section.index),
        name=section.name,
        index=section.index,
        began_s=section.began_s,
        deadline_s=section.deadline_s,
        reason=section.deadline_reason,
        thread_id=section.thread_id,
        native_thread_id=section.native_thread_id,
    )


def _is_main(watched: _Watched) -> bool:
    return watched.thread_id == _main_thread_id()


def _main_thread_id() -> int | None:
    return threading.main_thread().ident


def _first_sample_at_s(deadline_s: float) -> float:
    return max(_FIRST_SAMPLE_SHARE * deadline_s, deadline_s - _FIRST_SAMPLE_LEAD_S)


def _native_id(thread_id: int) -> int:
    for thread in threading.enumerate():
        if thread.ident == thread_id:
            return thread.native_id or 0
    return 0


def _in_debugger(thread_id: int) -> bool:
    frame = sys._current_frames().get(thread_id)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).split(".")[0] in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False
