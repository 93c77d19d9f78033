"""What the programs that hang share: the job around them, and the word for what is expected.

Every `tests/hangs/<name>.py` is a real job. Run it, and it starts its ranks (and a fake engine
where it needs one), prints `ready` once each rank is about to hang, and stays. A line `release`
on its standard input lets go of the hang where the hang allows it. With `--healthy` the same
program takes the branch that does not hang, and ends by itself.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from _forking import Forked, RankForker, die_with_parent

from watchdog.section import phase

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Expected:
    """The right answer for one program.

    Attributes:
        state: The verdict's state; several where the evidence allows either.
        culprits: Keys of the processes at the end of the chain, each must be named. Of a tuple
            inside, any one will do.
        where: Strings of which one must occur in the place or the reason given for a culprit.
        cause: Class of the first cause, `None` where none needs to be claimed.
        ranks: Trainer ranks of the job; each must occur in the verdict.
        engine: How the fake engine behaves (see `sglang_engine.py`), "" for no engine.
        releasable: Whether `release` ends the hang and lets the job finish.
        needs: What the machine must allow: `cgroup`, `netns`.
    """

    state: str | tuple[str, ...]
    culprits: tuple[str | tuple[str, ...], ...]
    where: tuple[str, ...]
    cause: str | None = None
    ranks: int = 3
    engine: str = ""
    releasable: bool = True
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """One rank's view of the job.

    Attributes:
        rank: Global rank.
        world_size: Number of ranks.
        healthy: Whether to take the branch that does not hang.
        release_fd: Reading from it blocks until the job is released; then it is at its end.
        folder: Scratch folder that the ranks of a job share.
        engine_url: Address of the fake engine, "" without one.
    """

    rank: int
    world_size: int
    healthy: bool
    release_fd: int
    folder: Path
    engine_url: str = ""
    _ready_fd: int = field(default=-1, repr=False)

    def ready(self) -> None:
        """Tell the launcher that this rank is about to hang."""
        os.write(self._ready_fd, f"{self.rank}\n".encode())

    def is_released(self) -> bool:
        """Whether the job was released."""
        return bool(select.select([self.release_fd], [], [], 0)[0])

    def wait_for_file(self, name: str) -> None:
        """Wait for the launcher to create a file in the folder."""
        while not (self.folder / name).exists():
            time.sleep(0.01)

    def release_later(self, release: Callable[[], object]) -> None:
        """Have a thread call `release` once the job is released."""

        def wait() -> None:
            os.read(self.release_fd, 1)
            release()

        threading.Thread(target=wait, name="release-later", daemon=True).start()

    def request(self, path: str) -> str:
        """POST to the engine without any time limit, and look at nothing but the text."""
        request = urllib.request.Request(self.engine_url + path, data=b"{}")
        try:
            with urllib.request.urlopen(request) as reply:
                return str(reply.read().decode())
        except urllib.error.HTTPError as error:
            return str(error.read().decode())


def meet_in_store(job: Job, what: str) -> None:
    """Say in the store that this rank is done, and wait there for every rank's word.

    A rank that waits so is in no collective: no peer's connection tells it of an end.
    """
    import torch.distributed as dist

    store = dist.distributed_c10d._get_default_store()
    store.set(f"{what}/{job.rank}", "done")
    phase(f"wait_for_{what}")
    keys = [f"{what}/{rank}" for rank in range(job.world_size)]
    store.wait(keys, datetime.timedelta(minutes=30))


Run = Callable[[Job], None]


def free_port() -> int:
    """A TCP port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(run: Run, expected: Expected, launcher: type[Launcher] | None = None) -> None:
    """Start the job."""
    parser = argparse.ArgumentParser(description=run.__module__)
    parser.add_argument("--healthy", action="store_true", help="take the branch that works")
    parser.add_argument("--folder", type=Path, help="scratch folder, shared by the ranks")
    parser.add_argument("--agent", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    die_with_parent()
    if options.folder is None:
        with tempfile.TemporaryDirectory(prefix="hang-") as scratch:
            command = [sys.executable, *sys.argv, "--folder", scratch]
            sys.exit(subprocess.run(command, check=False).returncode)
    options.folder.mkdir(parents=True, exist_ok=True)
    job = (launcher or Launcher)(run, expected, options.folder, options.healthy)
    sys.exit(job.supervise() if options.agent is None else job.be_agent(*options.agent))


class Launcher:
    """Starts the processes of a job, passes on `ready` and `release`, and ends with them."""

    # Whether ended ranks are reaped at once; a job whose launcher does not leaves zombies.
    reaps = True

    def __init__(self, run: Run, expected: Expected, folder: Path, healthy: bool) -> None:
        self.run, self.expected, self.folder, self.healthy = run, expected, folder, healthy
        self.processes: dict[str, subprocess.Popen[bytes] | Forked] = {}
        self._release_read, self._release_write = os.pipe()
        self._ready_read, self._ready_write = os.pipe()
        self._environment = {
            **os.environ,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
        }

    def be_rank(self, rank: int, release_fd: int, ready_fd: int) -> None:
        """The job as one rank sees it, from beginning to end."""
        import torch.distributed as dist

        dist.init_process_group("gloo")
        job = Job(
            rank=rank,
            world_size=dist.get_world_size(),
            healthy=self.healthy,
            release_fd=release_fd,
            folder=self.folder,
            engine_url=os.environ.get("HANGS_ENGINE_URL", ""),
            _ready_fd=ready_fd,
        )
        dist.barrier()
        self.run(job)
        dist.barrier()
        dist.destroy_process_group()

    def be_agent(self, node: int, release_fd: int, ready_fd: int) -> int:
        """Start the ranks of one node and wait for them; 0 if all ended well.

        Raises:
            NotImplementedError: A job of one node has no agents.
        """
        raise NotImplementedError

    def on_ready(self) -> None:
        """Called once all ranks are about to hang, before `ready` is printed."""

    def on_release(self) -> None:
        """Called when the job is released, after the ranks' `release_fd` was."""

    def supervise(self) -> int:
        """Run the job to its end; returns 0 if all ranks did, else 1."""
        self._prepare()
        # A handler that does nothing: the number arrives on the wake-up descriptor.
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        try:
            self._start()
            return self._loop(wake_read)
        finally:
            for process in self.processes.values():
                process.kill()
            for process in self.processes.values():
                process.wait()

    def _prepare(self) -> None:
        """Do what takes long, before anything runs that has to be ended."""
        self._forker = RankForker(self.folder.name, self.expected.ranks)

    def _start(self) -> None:
        if self.expected.engine:
            self._start_engine()
        os.environ.update(self._environment)
        for rank in range(self.expected.ranks):
            self.processes[f"rank {rank}"] = self._forker.fork(rank, rank, partial(self._be, rank))
        pids = {key: process.pid for key, process in self.processes.items()}
        (self.folder / "job.json").write_text(json.dumps(pids))

    def _be(self, rank: int) -> None:
        # Whoever waits for the other end of these would wait for this process.
        os.close(self._release_write)
        os.close(self._ready_read)
        self.be_rank(rank, self._release_read, self._ready_write)

    def _start_engine(self) -> None:
        port = free_port()
        behaviour = "healthy" if self.healthy else self.expected.engine
        command = [sys.executable, str(_HERE / "sglang_engine.py"), "--port", str(port)]
        command += ["--behaviour", behaviour, "--release-fd", str(self._release_read)]
        # Whoever starts the engines of a run hands its name on.
        environment = {**self._environment, "MILES_WATCHDOG_RUN": self.folder.name}
        process = self._spawn("engine 0", command, environment, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        self._environment["HANGS_ENGINE_URL"] = f"http://127.0.0.1:{port}"

    def _spawn(
        self,
        key: str,
        command: Sequence[str],
        environment: dict[str, str],
        stdout: int | None = None,
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr if stdout is None else stdout,
            pass_fds=(self._release_read, self._ready_write),
        )
        self.processes[key] = process
        return process

    def _loop(self, wake_read: int) -> int:
        waiting_for = set(range(self.expected.ranks))
        sources = [self._ready_read, wake_read, 0]
        while True:
            for source in select.select(sources, [], [])[0]:
                data = os.read(source, 4096)
                if source == self._ready_read and waiting_for:
                    waiting_for -= {int(word) for word in data.split()}
                    if not waiting_for:
                        self.on_ready()
                        sys.stdout.write("ready\n")
                        sys.stdout.flush()
                elif source == wake_read and {signal.SIGTERM, signal.SIGINT} & set(data):
                    return 1
                elif source == 0 and not data:
                    sources.remove(0)
                elif source == 0 and b"release" in data:
                    self._release()
            if self._all_ranks_ended():
                return self._write_exits()

    def _release(self) -> None:
        if self._release_write >= 0:
            os.close(self._release_write)
            self._release_write = -1
            self.on_release()

    def _ranks(self) -> dict[str, subprocess.Popen[bytes] | Forked]:
        return {key: p for key, p in self.processes.items() if key.startswith("rank")}

    def _all_ranks_ended(self) -> bool:
        if self.reaps:
            return None not in [process.poll() for process in self._ranks().values()]
        # Looking without reaping, until there is nothing left to look at.
        ended = [
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            for process in self._ranks().values()
        ]
        return all(ended)

    def _write_exits(self) -> int:
        exits = {key: process.wait() for key, process in self._ranks().items()}
        (self.folder / "exits.json").write_text(json.dumps(exits))
        return int(any(exits.values()))


class UnreapingLauncher(Launcher):
    """Leaves zombies, as one that is busy elsewhere."""

    reaps = False
