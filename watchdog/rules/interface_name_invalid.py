"""GLOO_SOCKET_IFNAME holds an exclusion or a list, which gloo does not understand.

What hangs
    The creation of the first gloo group.

How it shows
    `GLOO_SOCKET_IFNAME` contains `^` or `,`; `Unable to find address for: ^docker0` in a log.
    NCCL_SOCKET_IFNAME may hold the same value, and there it is valid.

What to do
    Name one interface.

Not to be confused with
    loopback_address, where the variable is not set.

Source
    https://github.com/aws-samples/aws-do-eks/pull/51
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import settings
from watchdog.signs.answers import finding, quotes, seen
from watchdog.situation import Situation
from watchdog.verdict import (
    network,
)

CAUSE_CLASS: Final = "network_interface"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    value = situation.switches.environment("GLOO_SOCKET_IFNAME") or ""
    if not settings.is_no_interface_name(value):
        return None
    said = situation.log(r"Unable to find address for")
    stuck = network.building(situation)
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed" if said else "likely" if stuck else "possible",
        "GLOO_SOCKET_IFNAME is not one interface name.",
        [
            f"GLOO_SOCKET_IFNAME={value}",
            *quotes(said, 1),
            *(seen(situation, p) for p in stuck[:2]),
        ],
    )
