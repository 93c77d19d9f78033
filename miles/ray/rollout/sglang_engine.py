"""The control process of one engine: starts its server, and speaks to it for all others."""

from __future__ import annotations

import argparse

from miles.backends.sglang_utils import sglang_engine
from miles.rollout.engine_process import start_engine


class SGLangEngine(sglang_engine.SGLangEngine):
    """An engine together with the server process that it owns.

    Named as upstream's actor, so that its process has the title known from there. Build it
    in the actor's main thread: the server ends when that thread does.

    Args:
        args: The run's flags.
        index: The engine's number, from 0.
        host: Address of this node.
    """

    def __init__(self, args: argparse.Namespace, index: int, host: str) -> None:
        self._started = start_engine(args, index, host)
        super().__init__(self._started.address, index)

    def get_address(self) -> str:
        """`http://host:port` of the server, which may still be starting up."""
        return self.address

    def exit_status(self) -> int | None:
        """The server's exit status; `None` while it runs."""
        return self._started.process.poll()

    def shutdown(self) -> None:
        """End the server. Returns when it is gone."""
        self._started.stop()
