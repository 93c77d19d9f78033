"""Ranks that are forked from a process that has imported torch: the import is most of their start.

They are ranks as a launcher starts them all the same: their environment can be read in `/proc`,
and the watch over them starts as it does with the import of torch.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from shown_environment import ROOM, ShownEnvironment, room

_PR_SET_PDEATHSIG = 1
_SENTINEL_WITHIN_S = 20.0


def die_with_parent() -> None:
    """Have the kernel end this process when the one that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Forked:
    """A forked child, with what the hang programs use of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, `None` while it runs."""
        return self._reap(os.WNOHANG)

    def wait(self) -> int:
        """Its exit status, once it has ended."""
        while self._reap(0) is None:
            continue
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        """End it, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class RankForker:
    """Imports torch, and forks ranks of a run.

    Args:
        run: Name of the run.
        num_ranks: World size.
    """

    def __init__(self, run: str, num_ranks: int) -> None:
        if ROOM not in os.environ:
            os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **room()})
        self._environment = ShownEnvironment()
        self._job = {"MILES_WATCHDOG_RUN": run, "WORLD_SIZE": str(num_ranks)}
        import torch.distributed  # noqa: F401

    def fork(self, rank: int, local_rank: int, work: Callable[[], None]) -> Forked:
        """Do the work in a rank of its own, which ends with this process."""
        if pid := os.fork():
            return Forked(pid)
        status = 1
        try:
            die_with_parent()
            self._become(rank, local_rank)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                threading._shutdown()  # type: ignore[attr-defined]
                atexit._run_exitfuncs()
                sys.stderr.flush()
            os._exit(status)

    def _become(self, rank: int, local_rank: int) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        store = {name: os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT")}
        self._environment.set(RANK=str(rank), LOCAL_RANK=str(local_rank), **self._job, **store)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)
        os.close(null)
        _start_watch()


def _start_watch() -> None:
    """Start the watch, if it is on, and wait for its sentinel.

    A rank that imports torch itself has both long before it trains.
    """
    from watchdog.process_watch import ensure_started

    watch = ensure_started()
    if watch is not None and watch._box.path is not None:
        from watchdog.node.duties import sentinel_pid

        deadline_s = time.monotonic() + _SENTINEL_WITHIN_S
        while sentinel_pid(watch._box.path.parent) is None and time.monotonic() < deadline_s:
            time.sleep(0.01)


def wait_for_all(ranks: Iterable[Forked]) -> int:
    """Wait for each, whatever the others returned; 0 if all of them ended well, else 1."""
    statuses = [rank.wait() for rank in ranks]
    return int(any(statuses))
