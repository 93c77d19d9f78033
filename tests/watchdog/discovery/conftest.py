from __future__ import annotations

import pytest

from watchdog.discovery.connections import Connections
from watchdog.discovery.jobs import jobs_among
from watchdog.discovery.places import placed
from watchdog.discovery.processes import Seen
from watchdog.evidence import Socket


class Node:
    """A made-up node: processes by pid, and connections between them."""

    def __init__(self) -> None:
        self.everything: dict[int, Seen] = {}
        self.sockets: dict[int, list[Socket]] = {}
        self._port = 40_000

    def add(self, pid: int, line: str, parent: int = 1, state: str = "S", **environ: str) -> int:
        words = tuple(line.split()) if state != "Z" else ()
        name = environ.pop("name", "python3") if state == "Z" else ""
        readable = None if environ.pop("unreadable", "") else environ
        self.everything[pid] = Seen(pid, parent, pid, state, name, words, readable)
        return pid

    def ranks(self, pids, parent: int = 1, port: str = "29500", line="python train.py", **more):
        for rank, pid in enumerate(pids):
            own = {"RANK": str(rank), "WORLD_SIZE": str(len(pids)), "MASTER_ADDR": "127.0.0.1"}
            self.add(pid, line, parent, **{**own, "MASTER_PORT": port, **more})

    def connect(self, client: int, server: int, port: int) -> None:
        self._port += 1
        near, far = f"127.0.0.1:{self._port}", f"127.0.0.1:{port}"
        listener = Socket(far, "", "LISTEN")
        if listener not in self.sockets.setdefault(server, []):
            self.sockets[server].append(listener)
        self.sockets[server].append(Socket(far, near, "ESTABLISHED"))
        self.sockets.setdefault(client, []).append(Socket(near, far, "ESTABLISHED"))

    def connections(self, pids=()) -> Connections:
        return Connections({pid: tuple(own) for pid, own in self.sockets.items()})

    def jobs(self):
        return jobs_among(self.everything, self.connections)

    def placed(self, boxes=()):
        (job,) = self.jobs()
        return placed(job, boxes, self.connections(), "node-0")

    def keys(self) -> dict[int, str]:
        return {member.seen.pid: member.key for member in self.placed().job.members}


@pytest.fixture
def node() -> Node:
    return Node()
