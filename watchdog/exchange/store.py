"""A board in the store of `torch.distributed`, by a connection of our own.

The connection is a second one to the same store: the training thread may block in its own for
as long as it likes. The server of a `TCPStore` lives in rank 0 (or in the agent of torchrun);
when that process is stopped, a call waits for an answer that does not come, so each runs on a
thread that is left behind when its time is over.
"""

from __future__ import annotations

import datetime
import socket
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from watchdog.capture import bounded
from watchdog.exchange.board import BoardError

T = TypeVar("T")

_PREFIX = "miles-watchdog/"


class StoreBoard:
    """Notes in a store.

    Args:
        store: A `torch.distributed.Store` that nobody else uses.
        timeout_s: For each call (s).
    """

    name = "torch.distributed store"

    def __init__(self, store: Any, *, timeout_s: float = 3.0) -> None:
        self._store = store
        self._timeout_s = timeout_s

    def put(self, key: str, value: bytes) -> None:
        """Write a note, or replace it in one step."""
        self._bounded(lambda: self._store.set(_PREFIX + key, value))

    def get(self, key: str) -> bytes | None:
        """Read a note; `None` if there is none."""

        def read() -> bytes | None:
            # `get` of a missing key would wait for it.
            return bytes(self._store.get(_PREFIX + key)) if self._has(key) else None

        return self._bounded(read)

    def has(self, key: str) -> bool:
        """Whether there is a note."""
        return self._bounded(lambda: self._has(key))

    def claim(self, key: str, value: bytes) -> bytes:
        """Write a note if there is none; returns what stands there then."""
        return self._bounded(lambda: bytes(self._store.compare_set(_PREFIX + key, b"", value)))

    def _has(self, key: str) -> bool:
        return bool(self._store.check([_PREFIX + key]))

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

    def connect() -> Any:
        store = _own_connection(distributed._get_default_store(), timeout_s)
        store.set_timeout(datetime.timedelta(seconds=timeout_s))
        return store

    try:
        return StoreBoard(bounded.result(connect, timeout_s=timeout_s), timeout_s=timeout_s)
    except Exception as error:
        raise BoardError(f"no connection to the store: {error}") from error


def _own_connection(store: Any, timeout_s: float) -> Any:
    inner = store
    while hasattr(inner, "underlying_store"):
        inner = inner.underlying_store
    tcp_store: Any = sys.modules["torch.distributed"].TCPStore
    if not isinstance(inner, tcp_store):
        return store.clone()
    # What `clone` does, but for the time-out: `clone` keeps that of the original, and would try
    # for half an hour to reach a host that is gone, with a page on standard error a try.
    with socket.create_connection((inner.host, inner.port), timeout=timeout_s):
        pass
    return tcp_store(
        inner.host,
        inner.port,
        is_master=False,
        wait_for_workers=False,
        timeout=datetime.timedelta(seconds=timeout_s),
    )
