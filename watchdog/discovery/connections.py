"""Whose connection is whose: the two ends of every TCP connection within this host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from watchdog.capture import sockets
from watchdog.capture.target import Target
from watchdog.evidence import Socket

Sockets = Mapping[int, tuple[Socket, ...]]


@dataclass(frozen=True)
class Connections:
    """The connections of some processes.

    Attributes:
        by_pid: Sockets of each process, as the kernel lists them.
    """

    by_pid: Sockets

    def peers(self, pid: int) -> frozenset[int]:
        """The other processes that this one has a connection to, whoever opened it."""
        ends = self._ends()
        mine = self.by_pid.get(pid, ())
        found = {ends.get((one.remote, one.local)) for one in mine if one.remote}
        return frozenset(other for other in found if other is not None and other != pid)

    def servers(self, pid: int) -> frozenset[int]:
        """The processes whose listening port this one is connected to."""
        return frozenset(
            other
            for other in self.peers(pid)
            for port in [self._ports(other)]
            if any(_port(one.remote) in port for one in self.by_pid.get(pid, ()) if one.remote)
        )

    def listens_at(self, pid: int) -> frozenset[int]:
        """The ports on which it takes connections."""
        return self._ports(pid)

    def _ports(self, pid: int) -> frozenset[int]:
        listening = (one for one in self.by_pid.get(pid, ()) if one.state == "LISTEN")
        return frozenset(_port(one.local) for one in listening)

    def _ends(self) -> dict[tuple[str, str], int]:
        return {
            (one.local, one.remote): pid
            for pid, own in self.by_pid.items()
            for one in own
            if one.remote
        }


def connections_of(pids: Iterable[int]) -> Connections:
    """Read them now. Processes that may not be looked at have none."""
    found = {}
    for pid in pids:
        try:
            found[pid] = sockets.collect(Target(pid)).sockets
        except OSError:
            found[pid] = ()
    return Connections(found)


def _port(address: str) -> int:
    port = address.rpartition(":")[2]
    return int(port) if port.isdigit() else 0
