"""Two hosts on one machine: namespaces for network, host name, processes and `/dev/shm`.

Each node has its own address on a link between them and its own `MILES_WATCHDOG_DIR`, unless
`HANGS_SHARED_DIR=1`. The link can be taken down. Needs root and iproute2.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from _forking import RankForker, wait_for_all
from _job import Launcher

_RANKS_A_NODE = 2
_INTERFACE = "link0"


def can_make_nodes() -> bool:
    """Whether network namespaces can be made here."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
        return False
    probe = f"hangs-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", probe], capture_output=True, check=False)
    return made.returncode == 0


def address(node: int) -> str:
    """The address of a node on the link."""
    return f"10.231.7.{node + 1}"


class Link:
    """Two network namespaces and the cable between them."""

    def __init__(self, name: str) -> None:
        self.namespaces = [f"{name}-{node}" for node in range(2)]

    def create(self) -> None:
        """Make the namespaces, join them, bring everything up."""
        for namespace in self.namespaces:
            _ip("netns", "add", namespace)
        first, second = self.namespaces
        peer = ["peer", "name", _INTERFACE, "netns", second]
        _ip("link", "add", _INTERFACE, "netns", first, "type", "veth", *peer)
        for node, namespace in enumerate(self.namespaces):
            _ip("-n", namespace, "addr", "add", f"{address(node)}/24", "dev", _INTERFACE)
            _ip("-n", namespace, "link", "set", "lo", "up")
            _ip("-n", namespace, "link", "set", _INTERFACE, "up")

    def cut(self) -> None:
        """Take the second node's end down: what is sent is lost, nobody is told."""
        _ip("-n", self.namespaces[1], "link", "set", _INTERFACE, "down")

    def delete(self) -> None:
        """Remove what `create` made, whatever of it is there."""
        for namespace in self.namespaces:
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=30)


class NodesLauncher(Launcher):
    """Starts one agent a node, and each agent its ranks, as torchrun does across hosts."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.link = Link(f"h{os.getpid()}")

    def supervise(self) -> int:
        """Run the job; the namespaces go away with it."""
        try:
            self.link.create()
            return super().supervise()
        finally:
            self.link.delete()

    def _prepare(self) -> None:
        # The agents import torch.
        pass

    def be_agent(self, node: int, release_fd: int, ready_fd: int) -> int:
        """Fork the node's ranks, wait for them; 0 if all ended well."""
        forker = RankForker(self.folder.name, self.expected.ranks)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        ranks = []
        for local_rank in range(_RANKS_A_NODE):
            rank = node * _RANKS_A_NODE + local_rank
            work = partial(self.be_rank, rank, release_fd, ready_fd)
            ranks.append(forker.fork(rank, local_rank, work))
        return wait_for_all(ranks)

    def _start(self) -> None:
        self._environment["MASTER_ADDR"] = address(0)
        self._environment["GLOO_SOCKET_IFNAME"] = _INTERFACE
        for node in range(self.expected.ranks // _RANKS_A_NODE):
            environment = dict(self._environment)
            if base := environment.get("MILES_WATCHDOG_DIR"):
                shared = environment.get("HANGS_SHARED_DIR") == "1"
                environment["MILES_WATCHDOG_DIR"] = base if shared else f"{base}/node-{node}"
            fds = (self._release_read, self._ready_write)
            agent = ["--agent", *map(str, (node, *fds))]
            command = self._inside(node, [sys.executable, *sys.argv, *agent])
            # The key starts like a rank's: the job ends when both agents have.
            self._spawn(f"rank agent of node {node}", command, environment)

    def _inside(self, node: int, command: Sequence[str]) -> list[str]:
        script = f'hostname node-{node} && mount -t tmpfs none /dev/shm && exec "$@"'
        enter = ["ip", "netns", "exec", self.link.namespaces[node]]
        enter += ["unshare", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
        return [*enter, "sh", "-c", script, "sh", *command]


def run_folders(base: Path) -> list[Path]:
    """The watchdog folders of the nodes, node 0 first."""
    return sorted(base.glob("node-*")) or [base]
