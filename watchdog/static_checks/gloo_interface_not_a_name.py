"""GLOO_SOCKET_IFNAME is an exclusion or a list.

What can happen
    Gloo takes the value for one name, finds no such interface, and no gloo group can be
    created.

What decides
    Nothing: what NCCL_SOCKET_IFNAME allows, gloo does not.

What to do
    Name one interface.

Source
    https://github.com/aws-samples/aws-do-eks/pull/51
"""

from __future__ import annotations

from typing import Final

from watchdog.signs.settings import is_no_interface_name
from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "interface-name-invalid"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    value = launch.variable("GLOO_SOCKET_IFNAME")
    if not is_no_interface_name(value):
        return None
    return Seen("certain", (f"GLOO_SOCKET_IFNAME={value}",))
