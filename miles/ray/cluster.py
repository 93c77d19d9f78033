"""The Ray cluster of a run: joined, or started for it and ended with it."""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import os
import re
import signal
import socket
from collections.abc import Iterator
from typing import Any

import psutil

from miles.launchers import RunFailedError

logger = logging.getLogger(__name__)

_OBJECT_STORE_BYTES = 100 * 1024**2
# Ray replaces 127.0.0.1 by the address that other hosts see; this one it leaves alone.
_LOOPBACK = "127.0.0.2"
_CONNECT_S = 5.0
_END_S = 10.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextlib.contextmanager
def ray_cluster(args: argparse.Namespace, num_cpus: float) -> Iterator[None]:
    """Connect to the cluster that the flags or `RAY_ADDRESS` name, or start one here.

    One that was started here listens on the loopback address, reports nothing to anybody,
    and leaves no process behind. One that was joined is left as it was.

    Args:
        args: The run's flags.
        num_cpus: CPUs that the run asks for; a cluster started here has at least as many.

    Raises:
        RunFailedError: There is no such cluster.
    """
    address = args.ray_address or os.environ.get("RAY_ADDRESS") or "local"
    # Before the first import of ray, which reads them.
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")  # what a rank says must not wait for the others
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    _refuse_unreachable(address)
    import ray

    others = set(psutil.Process().children(recursive=True))
    try:
        _connect(address, num_cpus)
        yield
    finally:
        # None, if the cluster was joined. Read while they are still our descendants.
        started = set(psutil.Process().children(recursive=True)) - others
        ray.shutdown()
        _end(started)


def _connect(address: str, num_cpus: float) -> None:
    import ray

    handlers = {signum: signal.getsignal(signum) for signum in _SIGNALS}
    settings: dict[str, Any] = {"logging_level": logging.WARNING}
    if address == "local":
        settings |= {
            "num_cpus": max(os.cpu_count() or 1, math.ceil(num_cpus)),
            "object_store_memory": _OBJECT_STORE_BYTES,
            "include_dashboard": False,
            "_node_ip_address": _LOOPBACK,
        }
    try:
        ray.init(address, **settings)
    except ConnectionError as error:
        raise RunFailedError(f"no Ray cluster at {address}: {error}") from error
    # Ray installs handlers of its own, which exit with another status.
    for signum, handler in handlers.items():
        signal.signal(signum, handler)


def _refuse_unreachable(address: str) -> None:
    # Ray itself tries for a minute, then ends this process.
    match = re.fullmatch(r"\[?([^\]/]+)\]?:(\d+)", address)
    if match is None:
        return
    try:
        socket.create_connection((match[1], int(match[2])), _CONNECT_S).close()
    except OSError as error:
        raise RunFailedError(f"no Ray cluster at {address}: {error}") from error


def _end(processes: set[psutil.Process]) -> None:
    # Workers end when their raylet does, but not at once, and one that is stopped never.
    _, alive = psutil.wait_procs(processes, timeout=_END_S)
    for process in alive:
        logger.warning("killed %s, which outlived its Ray cluster", process)
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, timeout=_END_S)
