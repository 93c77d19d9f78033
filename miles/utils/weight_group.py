"""A gloo group of one trainer rank and some engines, apart from any WORLD."""

from __future__ import annotations

import datetime
from typing import Any

from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, ProcessGroupGloo, TCPStore

from miles.utils.host_address import host_address

_TIMEOUT = datetime.timedelta(minutes=30)


class WeightGroup:
    """A group that carries weights from its member 0 to all others.

    Making one blocks until all members came.

    Args:
        name: The same for all members, and unique in the run.
        store: Where the members meet.
        member: Which of them this is.
        num_members: How many there are.

    Attributes:
        name: As given.
    """

    def __init__(self, name: str, store: TCPStore, member: int, num_members: int) -> None:
        self.name = name
        self._store = store  # it serves the others' lookups as long as the group lives
        prefixed = PrefixStore(name, store)
        self._group: Any = ProcessGroupGloo(prefixed, member, num_members, _TIMEOUT)

    @staticmethod
    def listen() -> TCPStore:
        """Open a store on a free port, for member 0."""
        return TCPStore(host_address(), 0, is_master=True, wait_for_workers=False, timeout=_TIMEOUT)

    @staticmethod
    def connect(port: int, host: str = "127.0.0.1") -> TCPStore:
        """Reach member 0's store, for the others."""
        return TCPStore(host, port, is_master=False, timeout=_TIMEOUT)

    def broadcast(self, tensor: Tensor) -> None:
        """Fill the tensor of every member with member 0's; blocks until done."""
        self._group.broadcast(tensor, root=0).wait()
