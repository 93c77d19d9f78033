"""Gloo has to guess the interface on a host with several.

What can happen
    A rank advertises an address that other nodes cannot reach, and the first gloo group never
    forms.

What decides
    Whether the host's name resolves to the interface that the nodes share.

What to do
    Set GLOO_SOCKET_IFNAME to that interface on every node, before the workers start.

Source
    https://github.com/pytorch/pytorch/issues/15592
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "loopback-address"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    if launch.variable("GLOO_SOCKET_IFNAME") or launch.host is None:
        return None
    names = launch.host.interfaces
    if len(names) < 2 or launch.num_nodes < 2:
        return None
    return Seen(
        "suspect", (f"interfaces here: {', '.join(names)}", "GLOO_SOCKET_IFNAME is not set")
    )
