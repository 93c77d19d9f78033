"""The thread that collects and reports, so that the monitor's heartbeat goes on meanwhile."""

from __future__ import annotations

import queue
import threading
import traceback
from collections import deque
from collections.abc import Callable

from watchdog.guest.notices import notice_once
from watchdog.guest.own_threads import mark_this_thread

THREAD_NAME = "weight-sync-watchdog-incident"
_MAX_THREADS = 3
_MAX_TASKS = 10_000


class IncidentWorker:
    """Runs tasks one after the other on a daemon thread that starts with the first task.

    Args:
        name: Name of the thread.
    """

    def __init__(self, name: str = THREAD_NAME) -> None:
        self._name = name
        # A task leaves when it is done: a thread may die as it takes one.
        self._tasks: deque[Callable[[], None] | None] = deque()
        self._arrivals: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._num_threads = 0

    def submit(self, task: Callable[[], None]) -> None:
        """Run the task soon. What it raises is reported once and goes no further.

        Where far more comes than can be done, the task is dropped, which is said once.
        """
        if len(self._tasks) >= _MAX_TASKS:
            notice_once(self._name, f"{self._name} has too much to do; some of it is left out")
            return
        self._put(task)
        if self._thread is None:
            self._start()
        else:
            self.keep()

    def keep(self) -> bool:
        """Replace the thread if it has died; the task in which that happened begins anew.

        What ends a thread is no `Exception`: an exit that the host raises in all threads it finds.

        Returns:
            Whether tasks are run. A thread that dies again and again is not replaced for ever.
        """
        if self._thread is None or self._thread.is_alive():
            return True
        if self._num_threads == _MAX_THREADS:
            return False
        self._start()
        return True

    def stop(self, timeout_s: float) -> None:
        """Let the tasks finish, no longer than `timeout_s`."""
        if self._thread is not None:
            self._put(None)
            self._thread.join(timeout_s)

    def _put(self, task: Callable[[], None] | None) -> None:
        self._tasks.append(task)
        self._arrivals.put(None)

    def _start(self) -> None:
        self._num_threads += 1
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        thread.start()
        self._thread = thread

    def _run(self) -> None:
        mark_this_thread()
        while True:
            while self._tasks:
                if (task := self._tasks[0]) is None:
                    return
                run_guarded(task)
                self._tasks.popleft()
            self._arrivals.get()


def run_guarded(task: Callable[[], None]) -> None:
    """Run a task of the watchdog; report what it raises, once a kind and place."""
    try:
        task()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        key = f"{type(error).__name__} {where.filename}:{where.lineno}"
        notice_once(key, f"the watchdog itself failed, training goes on: {error!r} at {key}")
