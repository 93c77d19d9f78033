"""The address at which other hosts reach this one."""

from __future__ import annotations

import os
import socket

import psutil

VARIABLE = "MILES_HOST_IP"
_LOOPBACK = "127.0.0.1"


def host_address() -> str:
    """What a launcher over several hosts left in `MILES_HOST_IP`, else the loopback address."""
    return os.environ.get(VARIABLE) or _LOOPBACK


def network_interface(address: str) -> str | None:
    """Name of the interface that has an IPv4 address; `None` where none has.

    All of 127.0.0.0/8 belongs to the loopback interface, listed or not.
    """
    wanted = _LOOPBACK if address.startswith("127.") else address
    for name, entries in psutil.net_if_addrs().items():
        if any(e.family == socket.AF_INET and e.address == wanted for e in entries):
            return name
    return None
