"""A training job as a subprocess of which nothing remains."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

TOKEN = "MILES_DEMO_TOKEN"
"""Variable by which the job's processes are found again: torchrun puts each rank into a
session of its own, so the launcher's process group does not hold them."""

_SIGTERM_TIMEOUT_S = 5.0


class Job:
    """A command, its output line by line, and an end for all that it started.

    Use it as a context manager: leaving it ends every process, also on Ctrl-C.
    """

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        self._token = uuid.uuid4().hex
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread(target=self._read, name="demo-output", daemon=True)
        try:
            with _signals_later():
                self._process = subprocess.Popen(
                    argv,
                    env={**environ, TOKEN: self._token},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    start_new_session=True,  # Ctrl-C is for us alone; we end the job in order
                )
            self._reader.start()
        except BaseException:  # Ctrl-C while it starts: the process is there already
            self.end()
            raise

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    @property
    def exit_status(self) -> int | None:
        """Of the launcher, `None` while it runs."""
        return self._process.poll() if self._process else None

    def lines(self, deadline_s: float, pause_s: float = 1.0) -> Iterator[str | None]:
        """The lines as they come, until the job has closed its output.

        Args:
            deadline_s: `time.monotonic` after which to stop.
            pause_s: Yield `None` after so much silence (s).
        """
        while (left_s := deadline_s - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=min(pause_s, left_s))
            except queue.Empty:
                if self.exit_status is not None and not self.pids():
                    return
                yield None
                continue
            if line is None:
                self._wait()
                return
            yield line

    def pids(self) -> list[int]:
        """Every living process that the job started, in no order."""
        import psutil

        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(TOKEN) == self._token:
                    found.append(process.pid)
        return found

    def commands(self) -> list[str]:
        """The command lines of its living processes, in no order."""
        import psutil

        found = []
        for pid in self.pids():
            with contextlib.suppress(psutil.Error, OSError):
                found.append(" ".join(psutil.Process(pid).cmdline()))
        return found

    def signal(self, signum: int, command_words: str, environ: Mapping[str, str]) -> int | None:
        """Send a signal to the one process with these words and variables.

        Returns:
            Its pid; `None` where there is none, or more than one.
        """
        import psutil

        found = []
        for pid in self.pids():
            with contextlib.suppress(psutil.Error, OSError):
                process = psutil.Process(pid)
                has_words = command_words in " ".join(process.cmdline())
                if has_words and environ.items() <= process.environ().items():
                    found.append(process)
        if len(found) != 1:
            return None
        found[0].send_signal(signum)
        return found[0].pid

    def end(self) -> None:
        """Ask the launcher to end, then kill whatever is left of the job."""
        import psutil

        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._wait()
        # Twice: a process may be starting another one while the list is made.
        for _ in range(2):
            left = [_process(pid) for pid in self.pids()]
            alive = [process for process in left if process is not None]
            for process in alive:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(alive, timeout=_SIGTERM_TIMEOUT_S)
        self._wait()
        if self._reader.ident is not None:
            self._reader.join(timeout=_SIGTERM_TIMEOUT_S)
        elif self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()

    def _wait(self) -> None:
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SIGTERM_TIMEOUT_S)

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Let signals that end this process do so after the block.

    One that came between fork and exec would leave a child that nothing tells yet to be ours.
    """
    came: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():  # elsewhere no handler runs
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # What is ignored stays so, also in the child.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for came_first in came[:1]:
            signal.raise_signal(came_first)


def _process(pid: int) -> psutil.Process | None:
    import psutil

    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def train_argv(flags: Sequence[str]) -> list[str]:
    """The command that trains with these flags, under this interpreter."""
    return [sys.executable, "-u", "-m", "miles.train", *flags]


def demo_environ(folder: str, *, ends_job: bool) -> dict[str, str]:
    """This environment with the watchdog on, and none of the user's own settings of it.

    Args:
        folder: Where the watchdog writes.
        ends_job: Whether the watchdog ends the job after the report.
    """
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("MILES_WATCHDOG")
    }
    settings = {
        "MILES_WATCHDOG": "1",
        "MILES_WATCHDOG_DIR": folder,
        "MILES_WATCHDOG_STALL_AFTER": "5",
        "OMP_NUM_THREADS": "1",
    }
    if ends_job:
        settings["MILES_WATCHDOG_ABORT_AFTER"] = "2"
    return {**kept, **settings}
