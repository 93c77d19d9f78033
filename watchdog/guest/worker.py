"""The thread that collects and reports, so that the monitor's heartbeat goes on meanwhile."""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable

from watchdog.guest.notices import notice_once
from watchdog.guest.own_threads import mark_this_thread

THREAD_NAME = "weight-sync-watchdog-incident"


class IncidentWorker:
    """Runs tasks one after the other on a daemon thread that starts with the first task.

    Args:
        name: Name of the thread.
    """

    def __init__(self, name: str = THREAD_NAME) -> None:
        self._name = name
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, task: Callable[[], None]) -> None:
        """Run the task soon. What it raises is reported once and goes no further."""
        self._tasks.put(task)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Let the tasks finish, no longer than `timeout_s`."""
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join(timeout_s)

    def _run(self) -> None:
        mark_this_thread()
        while (task := self._tasks.get()) is not None:
            run_guarded(task)


def run_guarded(task: Callable[[], None]) -> None:
    """Run a task of the watchdog; report what it raises, once a kind and place."""
    try:
        task()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        key = f"{type(error).__name__} {where.filename}:{where.lineno}"
        notice_once(key, f"the watchdog itself failed, training goes on: {error!r} at {key}")
