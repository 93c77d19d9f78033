"""NCCL or gloo uses a container bridge or a virtual interface that the other host cannot reach.

What hangs
    The creation of the cross-node communicator, on all its members.

How it shows
    `Bootstrap: Using veth…`, `docker0` or `lo` with peers on other hosts; `Call to bind failed:
    No such device`; `remote process exited or there was a network error` right after.

What to do
    Name the interface on every node (`NCCL_SOCKET_IFNAME`, `GLOO_SOCKET_IFNAME`), or exclude lo,
    docker and veth, on both ends.

Not to be confused with
    A single-node run, where lo is right.

Source
    https://github.com/whitecircle/halo/pull/17
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quotes
from watchdog.situation import Situation
from watchdog.verdict import (
    network,
)

CAUSE_CLASS: Final = "network_interface"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    said = situation.log(
        r"Bootstrap ?: Using (\[\d\])?(veth|docker|br-|virbr"
        r"|lo\b)|Call to bind failed|ifname .{0,40}not found"
    )
    if not said:
        return None
    hosts = {e.host for e in situation.evidence.log_events if e.host} | {
        p.host for p in situation.evidence.processes if p.host
    }
    waits = network.building(situation) or situation.log(r"remote process exited|ncclRemoteError")
    refused = network.refused_address(situation, said) is not None
    strong = len(hosts) > 1 and (bool(waits) or refused)
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if strong else "possible",
        "A communicator uses an interface that other hosts cannot reach.",
        quotes(said, 2),
    )
