"""A job of ranks that hang, forked from a zygote, and all that can be seen of it from outside."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.shown_environment import room
from watchdog.capture import proc
from watchdog.node.duties import sentinel_pid
from watchdog.run import dead_runs

_RUN = "schedule-{}"
_SHARED_MEMORY = Path("/dev/shm")
POLL_S = 0.02
_ENDED = ("", "Z", "X")
READY_WITHIN_S = 120.0
END_WITHIN_S = 60.0


class TooLateError(AssertionError):
    """What was waited for did not come in time."""


def wait_for(what: str, is_so: Callable[[], object], within_s: float, poll_s: float = POLL_S):
    """Look again and again until it is so, no longer than so many seconds."""
    deadline_s = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > deadline_s:
            raise TooLateError(f"{what}: not within {within_s:g} s")
        threading.Event().wait(poll_s)


class Zygote:
    """The process that all jobs are forked from.

    Args:
        with_torch: Whether the ranks of a job are a process group.
    """

    def __init__(self, *, with_torch: bool = False) -> None:
        self._lock = threading.Lock()
        environment = {
            # A watch over the test process itself would make these ranks its children.
            **{name: text for name, text in os.environ.items() if "MILES_WATCHDOG" not in name},
            "OMP_NUM_THREADS": "1",
            "MILES_WATCHDOG": "1",
            "MILES_WATCHDOG_STALL_AFTER": "1",
            **room(),
        }
        program = Path(__file__).with_name("zygote.py")
        command = [sys.executable, str(program), *(["--torch"] if with_torch else [])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, env=environment)

    def start(
        self, folder: Path, ways: Sequence[str], nodes: Sequence[int], **settings: str
    ) -> Job:
        """Start a job and wait until each of its ranks is where it hangs.

        Args:
            folder: Of this job alone.
            ways: How each rank hangs.
            nodes: Node of each rank.
            settings: Environment variables.
        """
        run = _RUN.format(secrets.token_hex(4))
        order = {
            "run": run, "folder": str(folder), "ways": ways, "nodes": nodes, "settings": settings
        }  # fmt: skip
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        return Job(run, folder, nodes)

    def end(self) -> None:
        """End it, and with it whatever of its jobs is left."""
        self._process.kill()
        self._process.communicate(timeout=20)


class Job:
    """One job.

    Attributes:
        folder: What it says, and its temporary files, are below.
        began_s: When its last rank had come to where it hangs (monotonic, s).
        pids: Of its ranks.
    """

    def __init__(self, run: str, folder: Path, nodes: Sequence[int]) -> None:
        # The last character is the node's.
        self._run, self.folder, self._nodes = run[:-1], folder, nodes
        started = folder / "ranks.json"
        wait_for(f"ranks of {run}", started.exists, READY_WITHIN_S)
        self.began_s = time.monotonic()
        self.pids: list[int] = json.loads(started.read_text())
        # A number may be another process's by the time that a fault strikes it.
        self._descriptors = {pid: os.pidfd_open(pid) for pid in self.pids}
        self._stopped: set[int] = set()
        self._killed: set[int] = set()

    def run_folder(self, rank: int) -> Path:
        """`<dir>/<run>` of a rank's node."""
        node = self._nodes[rank]
        return self.folder / f"runs/node-{node}/{self._run}{node}"

    def local(self, rank: int) -> Path | None:
        """Folder of the black boxes of a rank's node."""
        return next(self._in_memory(self._nodes[rank]), None)

    def sentinel(self, rank: int) -> int | None:
        """Process id of the sentinel of a rank's node, `None` where there is none."""
        local = self.local(rank)
        return None if local is None else sentinel_pid(local)

    def leader(self, rank: int) -> int | None:
        """Process id of whoever writes the report on a rank's node, `None` where nobody does."""
        held = _holders_of_locks()
        for lock in self._in_incidents("leader-*.lock", self._nodes[rank]):
            with contextlib.suppress(OSError):
                state = lock.stat()
                if holder := held.get((state.st_dev, state.st_ino)):
                    return holder
        return None

    def reports(self, rank: int | None = None) -> list[Path]:
        """All of its reports, or those of a rank's node, wherever they lie."""
        return list(self._in_incidents("report.json", "*" if rank is None else self._nodes[rank]))

    def has(self, pattern: str) -> bool:
        """Whether an incident has such a file."""
        return next(self._in_incidents(pattern), None) is not None

    def said(self) -> str:
        """What its processes said on standard error."""
        return (self.folder / "stderr").read_text(errors="replace")

    def strike(self, pid: int, number: int) -> None:
        """Send a signal to a process of the job, if it is there; one that ends or stops it, has."""
        with contextlib.suppress(ProcessLookupError):
            if pid in self._descriptors:
                signal.pidfd_send_signal(self._descriptors[pid], number)
            elif pid in self.processes():
                os.kill(pid, number)
            else:
                return
        if number == signal.SIGKILL:
            self._killed.add(pid)
            wait_for(f"end of {pid}", lambda: proc.state(pid) in _ENDED, END_WITHIN_S)
        if number == signal.SIGSTOP:
            self._stopped.add(pid)
            wait_for(f"stop of {pid}", lambda: proc.state(pid) in ("T", *_ENDED), END_WITHIN_S)

    def state(self, rank: int) -> str:
        """State of a rank as the kernel calls it: `S`, `T`; "" where it has ended."""
        pid = self.pids[rank]
        has_ended = select.select([self._descriptors[pid]], [], [], 0)[0]
        state = "" if has_ended else proc.state(pid)
        return "" if state in _ENDED else state

    def ended_unexpectedly(self) -> list[int]:
        """Ranks that ended though nobody killed them."""
        ranks = range(len(self.pids))
        return [
            rank for rank in ranks if not self.state(rank) and self.pids[rank] not in self._killed
        ]

    def has_running_sentinel(self, rank: int) -> bool:
        """Whether a rank's node has a sentinel, and nobody stopped it."""
        pid = self.sentinel(rank)
        return pid is not None and proc.state(pid) not in ("", "T")

    def processes(self) -> dict[int, str]:
        """Command lines of its processes that run, by pid."""
        mark = f"MILES_WATCHDOG_RUN={self._run}".encode()
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (path / "environ").read_bytes():
                    line = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(path.name)] = line.decode(errors="replace")
        return found

    def end(self) -> None:
        """Kill its ranks; then nothing of it must be left, or `TooLateError` says what."""
        for pid in self._stopped - set(self.pids):
            # Nobody is left that would take over from a sentinel that is stopped.
            self.strike(pid, signal.SIGCONT)
        for pid in self.pids:
            self.strike(pid, signal.SIGKILL)
        for descriptor in self._descriptors.values():
            select.select([descriptor], [], [], END_WITHIN_S)
            os.close(descriptor)
        try:
            wait_for("", lambda: not self.processes(), END_WITHIN_S, 0.2)
        except TooLateError:
            left = self.processes()
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            raise TooLateError(f"still there {END_WITHIN_S:g} s after the ranks: {left}") from None

    def left_in_memory(self) -> list[str]:
        """Its folders in shared memory, once the next run on this host has started."""
        for local in self._in_memory("*"):
            dead_runs.settle(local.parent)
        return [f"{local}: {os.listdir(local)}" for local in self._in_memory("*")]

    def left_among_temporary_files(self) -> list[str]:
        """Its files in the folder for temporary ones, but for reports in the substitute."""
        shared = Path(tempfile.gettempdir()).glob(f"*{self._run}*")
        own = (self.folder / "tmp").glob("*")
        return [str(path) for path in [*shared, *own] if not _is_substitute(path)]

    def _in_memory(self, node: int | str) -> Iterator[Path]:
        return _SHARED_MEMORY.glob(f"miles-watchdog-*/{self._run}{node}.*")

    def _in_incidents(self, pattern: str, node: int | str = "*") -> Iterator[Path]:
        run = f"{self._run}{node}"
        substitute = f"miles-watchdog-*/{run}/incidents"
        places = (f"runs/*/{run}/incidents", f"runs/lost/{run}-*")
        for place in (*places, f"tmp/{substitute}", f"runs/{substitute}"):
            yield from self.folder.glob(f"{place}/*/{pattern}")


def _is_substitute(path: Path) -> bool:
    return path.name == f"miles-watchdog-{os.getuid()}"


def _holders_of_locks() -> dict[tuple[int, int], int]:
    """Process ids by device and inode of the file."""
    found = {}
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "FLOCK":
            major, minor, inode = words[5].split(":")
            found[os.makedev(int(major, 16), int(minor, 16)), int(inode)] = int(words[4])
    return found
