"""Work that may never return, done so that the caller does.

Reading `/proc/<pid>/environ` waits for a lock of the process that is looked at; a file on a
dead file server is never written. A thread that waits so cannot be ended, so it is left behind:
a daemon, which keeps no process alive.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from watchdog.guest.own_threads import mark_this_thread

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def results(
    jobs: Mapping[K, Callable[[], T]], *, timeout_s: float, at_once: int = 4
) -> dict[K, T | Exception]:
    """Run all jobs, a few at a time.

    Args:
        jobs: What to run, by a name of the caller's choice.
        timeout_s: Time for all of them together (s).
        at_once: Threads.

    Returns:
        One entry a job, in the order of `jobs`: what it returned, what it raised, or a
        `TimeoutError` where it had not ended in time.
    """
    waiting: queue.SimpleQueue[tuple[K, Callable[[], T]]] = queue.SimpleQueue()
    ended: queue.SimpleQueue[tuple[K, T | Exception]] = queue.SimpleQueue()
    late = threading.Event()
    for job in jobs.items():
        waiting.put(job)
    for number in range(min(at_once, len(jobs))):
        threading.Thread(
            target=_work, args=(waiting, ended, late), name=f"weight-sync-capture-{number}",
            daemon=True,
        ).start()  # fmt: skip
    found = _gathered(ended, len(jobs), timeout_s)
    late.set()
    overdue = TimeoutError(f"not done within {timeout_s:g} s")
    return {name: found.get(name, overdue) for name in jobs}


def result(job: Callable[[], T], *, timeout_s: float) -> T:
    """Run one job.

    Raises:
        TimeoutError: It had not ended in time.
        Exception: Whatever it raised.
    """
    outcome = results({"": job}, timeout_s=timeout_s)[""]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _work(
    waiting: queue.SimpleQueue[tuple[K, Callable[[], T]]],
    ended: queue.SimpleQueue[tuple[K, T | Exception]],
    late: threading.Event,
) -> None:
    mark_this_thread()
    while not late.is_set():
        try:
            name, job = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            ended.put((name, job()))
        except Exception as error:
            ended.put((name, error))


def _gathered(
    ended: queue.SimpleQueue[tuple[K, T | Exception]], num_jobs: int, timeout_s: float
) -> dict[K, T | Exception]:
    deadline_s = time.monotonic() + timeout_s
    found: dict[K, T | Exception] = {}
    while len(found) < num_jobs:
        try:
            name, outcome = ended.get(timeout=max(0.0, deadline_s - time.monotonic()))
        except queue.Empty:
            break
        found[name] = outcome
    return found
