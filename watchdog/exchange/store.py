"""A board in the store of `torch.distributed`, by a connection of our own.

The connection is a second one to the same store: the training thread may block in its own for
as long as it likes. The server of a `TCPStore` lives in rank 0 (or in the agent of torchrun);
when that process is stopped, a call waits for an answer that does not come, so each runs on a
thread that is left behind when its time is over.
"""

from __future__ import annotations

import datetime
import importlib
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from watchdog.capture import bounded
from watchdog.exchange import store_address
from watchdog.exchange.board import BoardError
from watchdog.exchange.store_address import StoreAddress, prefix_of

T = TypeVar("T")

# torch is read from a disk that a busy job may keep busy.
_IMPORT_WITHIN_S = 30.0


class StoreBoard:
    """Notes in a store.

    Args:
        store: A `torch.distributed.Store` that nobody else uses.
        timeout_s: For each call (s).
        address: Where the store is, for others to connect to; `None` where they cannot.
    """

    name = "torch.distributed store"

    def __init__(
        self, store: Any, *, timeout_s: float = 3.0, address: StoreAddress | None = None
    ) -> None:
        self.address = address
        self._store = store
        self._timeout_s = timeout_s
        self._prefix = prefix_of(os.environ) if address is None else address.prefix

    def put(self, key: str, value: bytes) -> None:
        """Write a note, or replace it in one step."""
        self._bounded(lambda: self._store.set(self._prefix + key, value))

    def get(self, key: str) -> bytes | None:
        """Read a note; `None` if there is none."""

        def read() -> bytes | None:
            # `get` of a missing key would wait for it.
            return bytes(self._store.get(self._prefix + key)) if self._has(key) else None

        return self._bounded(read)

    def has(self, key: str) -> bool:
        """Whether there is a note."""
        return self._bounded(lambda: self._has(key))

    def claim(self, key: str, value: bytes) -> bytes:
        """Write a note if there is none; returns what stands there then."""
        return self._bounded(lambda: bytes(self._store.compare_set(self._prefix + key, b"", value)))

    def _has(self, key: str) -> bool:
        return bool(self._store.check([self._prefix + key]))

    def _bounded(self, work: Callable[[], T]) -> T:
        try:
            return bounded.result(work, timeout_s=self._timeout_s)
        except Exception as error:  # torch raises DistStoreError, DistNetworkError, RuntimeError
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise BoardError(reason) from error


def default_store_board(*, timeout_s: float = 3.0) -> StoreBoard | None:
    """A board in the default store of this process, `None` where torch has none (yet).

    Never imports torch: a process that did not has no store.

    Raises:
        BoardError: There is one, and it cannot be reached.
    """
    distributed: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if distributed is None or not distributed.is_initialized():
        return None

    def connect() -> StoreBoard:
        store = distributed._get_default_store()
        address = _address_of(store)
        if address is not None:
            return _connected(address, timeout_s)
        return _as_board(store.clone(), timeout_s)

    return _bounded_connection(connect, timeout_s)


def noted_store_board(local: Path, *, timeout_s: float = 3.0) -> StoreBoard | None:
    """A board in the store that a rank of this node has noted, `None` where none has.

    For a process that speaks for ranks, and is none itself: torch is imported, once it is clear
    that the store's host can be reached.

    Args:
        local: Folder of the node's black boxes.
        timeout_s: For each call (s).

    Raises:
        BoardError: It cannot be reached.
    """
    address = store_address.noted(local)
    if address is None:
        return None
    # Of a host that is gone, torch's own log would have a page to say.
    os.environ["TORCH_CPP_LOG_LEVEL"] = "FATAL"

    def import_torch() -> None:
        _touch(address, timeout_s)
        importlib.import_module("torch.distributed")

    # Apart: a host that is stopped lets one connect and never answers, which must not take as
    # long as an import may.
    _bounded_connection(import_torch, timeout_s + _IMPORT_WITHIN_S)
    return _bounded_connection(lambda: _connected(address, timeout_s), timeout_s)


def _bounded_connection(connect: Callable[[], T], timeout_s: float) -> T:
    try:
        return bounded.result(connect, timeout_s=timeout_s)
    except Exception as error:
        raise BoardError(f"no connection to the store: {error}") from error


def _address_of(store: Any) -> StoreAddress | None:
    """Where a store is, whatever prefixes are around it; `None` for one without an address."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    if not isinstance(store, sys.modules["torch.distributed"].TCPStore):
        return None
    return StoreAddress(store.host, store.port, prefix_of(os.environ))


def _connected(address: StoreAddress, timeout_s: float) -> StoreBoard:
    # What `clone` does, but for the time-out: `clone` keeps that of the original, and would try
    # for half an hour to reach a host that is gone, with a page on standard error a try.
    _touch(address, timeout_s)
    from torch.distributed import TCPStore

    store = TCPStore(
        address.host,
        address.port,
        is_master=False,
        wait_for_workers=False,
        timeout=datetime.timedelta(seconds=timeout_s),
    )
    return _as_board(store, timeout_s, address)


def _touch(address: StoreAddress, timeout_s: float) -> None:
    """Raise `OSError` where nobody listens there."""
    with socket.create_connection((address.host, address.port), timeout=timeout_s):
        pass


def _as_board(store: Any, timeout_s: float, address: StoreAddress | None = None) -> StoreBoard:
    store.set_timeout(datetime.timedelta(seconds=timeout_s))
    return StoreBoard(store, timeout_s=timeout_s, address=address)
