"""The watch over one process: black box, recorder and monitor, started when it proves a rank.

What could harm the host, and where it is kept from it:
    - raise: every entrance is guarded by its caller, and what runs on our threads by
      `run_guarded`.
    - block: the run folder, which may lie on a disk that hangs, is touched by our threads only;
      the training thread creates the black box in shared memory.
    - keep it alive: both threads are daemons; at exit a report being written gets 5 s.
    - fork: a child has no watch, and leaves the parent's black box alone; the C timer is off
      while the process forks.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from watchdog.guest import half_done_imports
from watchdog.guest.dead_mans_switch import MARGIN_S, DeadMansSwitch
from watchdog.guest.notices import notice, notice_once
from watchdog.guest.worker import IncidentWorker, run_guarded
from watchdog.process_identity import (
    OWNER_VARIABLE,
    RUN_VARIABLE,
    ProcessIdentity,
    process_identity,
    run_name,
)
from watchdog.recording.recorder import FinishedSection, OpenSection, Recorder, active
from watchdog.run import stall_ends
from watchdog.run.folder import RunFolder
from watchdog.run.one_voice import is_first_to_say
from watchdog.run.substitute import substitute_of
from watchdog.settings import Knob, Settings, knobs
from watchdog.timing.deadlines import Deadlines
from watchdog.timing.monitor import Hooks, Monitor
from watchdog.timing.stall_context import StallContext
from watchdog.timing.sync_log import FILE_NAME, append_line, sync_line

if TYPE_CHECKING:
    from watchdog.node.duties import NodeDuties

_STOP_TIMEOUT_S = 5.0

_watch: ProcessWatch | None = None
_start_lock = threading.Lock()
_is_over = False
_minds_forks = False


class ProcessWatch:
    """All parts of the watch, wired together.

    Attributes:
        settings: All settings.
        identity: This process.
        folder: Where its files lie.
        recorder: What the training thread writes to.
        monitor: The thread that looks.
        has_folder: Whether the run folder could be made.
    """

    def __init__(self, settings: Settings, identity: ProcessIdentity, run: str) -> None:
        self.settings = settings
        self.identity = identity
        self.folder = RunFolder(settings, run, identity)
        self.has_folder = False
        self._box = self.folder.create_blackbox()
        self._box.keep_to_the_end()
        self._deadlines = Deadlines(settings)
        self.recorder = Recorder(self._box, self._deadline_of)
        self._duties: NodeDuties | None = None
        self._is_stopping = False
        self._switch = DeadMansSwitch(self.folder.ranks / f"{self.folder.name}.faulthandler")
        # A disk that hangs must stop neither the heartbeat nor a report.
        self._files = IncidentWorker("weight-sync-watchdog-files")
        self.monitor = Monitor(
            settings,
            self.recorder,
            Hooks(_report, _first_sample, self._log_later, self._switch.disarm),
            deadlines=self._deadlines,
            identity=lambda: self.identity,
            run_folder=self.folder.path,
        )

    def start(self) -> None:
        """Start the threads, and write marks from now on."""
        self._files.submit(self._prepare)
        self.monitor.start()
        active.recorder = self.recorder

    def stop(self) -> None:
        """End the threads and clear up. Never raises."""
        active.recorder = None
        run_guarded(self._stop)

    def begin_section(self, name: str, about: dict[str, object]) -> OpenSection | None:
        """Enter a section, with the C timer behind it; `None` if it is a nested one."""
        section = self.recorder.begin_section(name, about)
        if section is not None:
            self._switch.arm(section.deadline_s + MARGIN_S)
        return section

    def end_section(self, section: OpenSection, raised: str) -> None:
        """Leave a section; one that was entered before a fork is none of this process."""
        if self.recorder.open_section is section:
            self._switch.disarm()
            self.recorder.end_section(section, raised)

    def before_fork(self) -> None:
        """Let a child inherit nothing that runs."""
        self._switch.before_fork()

    def after_fork(self) -> None:
        """Go on after a fork of this process."""
        self._switch.after_fork()

    def set_framework(self, framework: str) -> None:
        """Say which framework this process runs."""
        self.identity = replace(self.identity, framework=framework)
        self._write_identity()

    def learn_ranks(self) -> None:
        """Ask torch for rank and world size; they may not have been known, or have changed."""
        now = process_identity(os.environ)
        known = (self.identity.rank, self.identity.world_size)
        if self.identity.role == "trainer" and known != (now.rank, now.world_size):
            self.identity = replace(self.identity, rank=now.rank, world_size=now.world_size)
            self._write_identity()

    def _write_identity(self) -> None:
        self._box.set_identity(self.folder.identity_contents(self.identity))

    def _prepare(self) -> None:
        self.has_folder = self.folder.prepare(self._box)
        importlib.import_module("watchdog.capture.ptrace").allow_any_tracer()
        self._start_duties()
        if self.has_folder:
            try:
                self._switch.open()
            except OSError as error:
                notice_once("switch", f"no stack of a rank that holds its GIL: {error}")
        if self._speaks_for_all():
            for warning in self.settings.warnings:
                notice(warning)
            notice(_start_line(self))

    def _deadline_of(self, name: str) -> tuple[float, str]:
        timeout_s = self.recorder.groups.shortest_timeout_s()
        warning = self._deadlines.warning(timeout_s)
        if warning and self._speaks_for_all():
            notice_once("deadline", warning)
        return self._deadlines.of_section(name, timeout_s)

    def _log_later(self, finished: FinishedSection, incident: str | None) -> None:
        self._files.submit(lambda: self._log(finished, incident))

    def _log(self, finished: FinishedSection, incident: str | None) -> None:
        line = sync_line(finished, self.identity, incident)
        if incident is not None:
            self._log_end_of_stall(finished, incident, line)
        if self.has_folder and self._logs_for_all():
            append_line(self.folder.path / FILE_NAME, line)

    def _log_end_of_stall(
        self, finished: FinishedSection, incident: str, line: dict[str, object]
    ) -> None:
        folder = _incident_folder(self.folder.path, incident)
        way = "failed" if finished.raised else stall_ends.RECOVERED.flag
        text = _end_of_stall(finished, self.identity)
        if folder is not None:
            append_line(folder / f"{way}.jsonl", line, mode=0o600)
            if not finished.raised:
                took_s = finished.ended_s - finished.section.began_s
                stall_ends.note(folder, stall_ends.RECOVERED, took_s)
            if not is_first_to_say(way, folder):
                return
            text += f"; all ranks: {folder / way}.jsonl"
        notice(text)

    def _start_duties(self) -> None:
        # Ranks alone: an engine's process has neighbours of its own to keep it.
        if self._box.path is None or self.identity.role != "trainer":
            return
        from watchdog.node.duties import NodeDuties
        from watchdog.node.post import Post

        if self._is_stopping:
            return
        self._duties = NodeDuties(
            Post(self.settings, lambda: self.identity, self._box.path, self.folder.path)
        )
        self._duties.start()

    def _speaks_for_all(self) -> bool:
        """Whether what concerns all ranks is said here: rank 0, or a process without ranks."""
        is_trainer = self.identity.role == "trainer"
        return self.identity.rank is None or (is_trainer and self.identity.rank == 0)

    def _logs_for_all(self) -> bool:
        if self.identity.role != "trainer":
            return self.identity.rank is None
        return self.identity.rank == self.folder.lowest_rank_here()

    def _stop(self) -> None:
        self._is_stopping = True
        self.monitor.stop(_STOP_TIMEOUT_S)
        self._files.stop(_STOP_TIMEOUT_S)
        # After the thread that starts them: a short program ends before they have begun.
        if self._duties is not None:
            self._duties.stop()
        self._switch.close()
        self._box.exited()
        self.folder.leave()


def current_watch() -> ProcessWatch | None:
    """The watch over this process, `None` before it started."""
    return _watch


def ensure_started(rank: int | None = None, world_size: int | None = None) -> ProcessWatch | None:
    """Start the watch over this process, once. Never raises.

    Args:
        rank: Rank that the caller knows.
        world_size: World size that the caller knows.

    Returns:
        The watch, `None` when the watchdog is off or could not start (it says so once).
    """
    global _watch, _is_over
    if _watch is not None or _is_over:
        return _watch
    with _start_lock:
        if _watch is None and not _is_over:
            try:
                _watch = _started(rank, world_size)
            except Exception as error:
                notice_once("start", f"could not start, training goes on without: {error!r}")
            _is_over = _watch is None
    return _watch


def stop() -> None:
    """End the watch over this process for good, e.g. before its interpreter ends."""
    global _watch, _is_over
    watch, _watch = _watch, None
    if watch is not None:
        # A section that comes yet starts no other one, which nobody would end.
        _is_over = True
        watch.stop()


def _started(rank: int | None, world_size: int | None) -> ProcessWatch | None:
    settings = Settings.from_environ(os.environ)
    if not settings.enabled:
        return None
    identity = process_identity(os.environ, rank=rank, world_size=world_size)
    run = run_name(os.environ)
    watch = ProcessWatch(settings, identity, run)
    try:
        _begin(watch, run)
    except BaseException:
        # A thread that nobody ends may end the process, when it is killed without a descriptor.
        watch.stop()
        raise
    return watch


def _begin(watch: ProcessWatch, run: str) -> None:
    identity = watch.identity
    # For the children of this process: the same folder, and whose rank it is that they inherit.
    os.environ[RUN_VARIABLE] = run
    os.environ["MILES_WATCHDOG_DIR"] = str(watch.folder.path.parent)
    if identity.role == "trainer":
        os.environ[OWNER_VARIABLE] = f"{identity.rank}:{identity.pid}"
    # Before its threads import anything.
    _mind_forks()
    watch.start()
    atexit.register(stop)
    if "multiprocessing.process" in sys.modules:
        from multiprocessing import util

        # A child of multiprocessing ends by `os._exit`: its `atexit` functions are not called.
        util.Finalize(None, stop, exitpriority=0)


def _mind_forks() -> None:
    # Once: a child of a fork has inherited it.
    global _minds_forks
    if not _minds_forks:
        _minds_forks = True
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_fork, after_in_child=_forget_in_child
        )


def _before_fork() -> None:
    if _watch is not None:
        _watch.before_fork()


def _after_fork() -> None:
    if _watch is not None:
        _watch.after_fork()


def _forget_in_child() -> None:
    global _watch, _start_lock, _is_over
    _watch, _start_lock, _is_over = None, threading.Lock(), False
    active.recorder = None
    half_done_imports.forget_in_child()


def _start_line(watch: ProcessWatch) -> str:
    changed = [
        f"{knob.variable.removeprefix('MILES_WATCHDOG_')}={_shown(knob)}"
        for knob in knobs(watch.settings)
        if knob.origin == "environment" and knob.variable not in ("MILES_WATCHDOG",)
    ]
    place = f"files in {watch.folder.path}"
    if not watch.has_folder:
        place = f"without a folder, incidents go to {substitute_of(watch.folder.path)}"
    return f"on; {place}; " + (", ".join(changed) or "default settings")


def _incident_folder(run_folder: Path, incident: str) -> Path | None:
    """Where the incident lies: below the run's folder, or in its substitute."""
    # Imported at a stall only, as all that belongs to one.
    folder = importlib.import_module("watchdog.incident.folder").IncidentFolder
    places: tuple[Path, ...] = folder(run_folder, incident).folders
    return next((place for place in places if place.is_dir()), None)


def _end_of_stall(finished: FinishedSection, identity: ProcessIdentity) -> str:
    section = finished.section
    who = "" if identity.rank is None else f" in rank {identity.rank}"
    took = f"after {finished.ended_s - section.began_s:.1f} s"
    if finished.raised:
        return f"{section.name} {section.index} failed{who} {took}: {finished.raised}"
    return f"{section.name} {section.index} ended after all{who}, {took}"


def _shown(knob: Knob) -> str:
    # A command may carry a token.
    return "(a command)" if knob.variable == "MILES_WATCHDOG_ON_STALL" else knob.value


def _first_sample(context: StallContext) -> object:
    incident = importlib.import_module("watchdog.incident")
    take = getattr(incident, "first_sample", None)
    return None if take is None else take(context)


def _report(context: StallContext) -> None:
    # Imported at a stall only: it brings most of the package, and a healthy run needs none.
    incident = importlib.import_module("watchdog.incident")
    incident.handle_stall(context, settings=context.settings)
