"""A fixed port lies where the kernel takes ports for connections.

What can happen
    Now and then the port is taken by somebody's outgoing connection, and the group cannot form
    (`Errno 98`), or a rank talks to a stranger.

What decides
    Chance, and how many connections the node has.

What to do
    Use a port below the range of net.ipv4.ip_local_port_range, or reserve it
    (ip_local_reserved_ports).

Source
    https://docs.kernel.org/networking/ip-sysctl.html
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = ""

_FLAGS = ("master_port", "group_port", "vllm_group_port", "weight_sync_port", "main_process_port")


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    first, last = launch.host.ephemeral_ports if launch.host else (32768, 60999)
    facts: list[str] = []
    for name in _FLAGS:
        port = launch.switches.number(name)
        if port is not None and first <= port <= last:
            facts += launch.shown(name)
    master = launch.variable("MASTER_PORT")
    if master.isdigit() and first <= int(master) <= last:
        facts.append(f"MASTER_PORT={master}")
    if not facts:
        return None
    return Seen("suspect", (*facts, f"ephemeral ports: {first}-{last}"))
