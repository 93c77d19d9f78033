"""NCCL or gloo is told to use loopback, a container bridge or a virtual interface.

What can happen
    The communicator across nodes cannot be built: the other host does not reach the address,
    and every member waits for it.

What decides
    Whether a rank or an engine is on another host or in another container. On one host, each of
    these interfaces works.

What to do
    Name the interface that the other hosts reach, on every node.

Source
    https://github.com/whitecircle/halo/pull/17
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.static_checks.launch import Confidence, Launch, Seen

RULE: Final = "virtual-interface"

# A leading `=` asks NCCL for the exact name; an exclusion, `^docker`, names what is not used.
_VIRTUAL = re.compile(r"=?(?:lo$|docker|veth|virbr|br-|cni|flannel)")


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    values = {
        name: launch.variable(name)
        for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
    }
    found = tuple(
        f"{name}={value}" for name, value in values.items() if _VIRTUAL.match(value.strip())
    )
    if not found:
        return None
    confidence: Confidence = "likely" if launch.num_nodes > 1 else "suspect"
    return Seen(confidence, found)
