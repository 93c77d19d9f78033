"""A host gives its peers an address that only itself can reach.

What hangs
    All members of the group, in its creation: each waits for a connection that cannot come. NCCL
    may work meanwhile, as it chooses its interface by another variable.

How it shows
    `Unable to resolve hostname … Using the loopback address as fallback`, `remote=[127.0.0.1]`,
    `connect [127.0.1.1]`, a connection attempt to 127.0.0.1 from another host; native frames in
    `connectFullMesh`.

What to do
    Set `GLOO_SOCKET_IFNAME` (one concrete interface, no `^`, no list) on every node before the
    workers start, or give the hostname a routable address in /etc/hosts.

Not to be confused with
    A firewall, where the address is right; a member that never came.

Source
    https://github.com/aws-samples/aws-do-eks/pull/50
    https://github.com/pytorch/pytorch/issues/15592
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quotes, refuted, seen
from watchdog.situation import Situation
from watchdog.verdict import (
    network,
)

CAUSE_CLASS: Final = "network_interface"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    said = situation.log(
        r"loopback address|connect(ing)? (to )?\[?127\."
        r"|remote=\[?(localhost|127\.)|Unable to resolve hostname"
    )
    local = [
        s
        for p in situation.evidence.processes
        for s in p.sockets
        if s.state.replace("-", "_") == "SYN_SENT" and s.remote.startswith("127.")
    ]
    builders = network.building(situation)
    if not said and not (local and builders):
        return None
    if said and not local and network.worked_before(situation, said):
        return refuted(
            __name__, CAUSE_CLASS, "a sync over the same groups ended well after the warning"
        )
    several = (
        len(
            {p.host for p in situation.evidence.processes if p.host}
            | {e.host for e in situation.evidence.log_events if e.host}
        )
        > 1
    )
    sure = bool(said) and (
        bool(local) or any(situation.wait(p).passes("connectFullMesh") for p in builders)
    )
    if not (builders or local or several or situation.log(r"connectFullMesh failed|new_group")):
        return finding(
            __name__,
            CAUSE_CLASS,
            "possible",
            "A host falls back to its loopback address.",
            quotes(said, 2),
        )
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed" if sure else "likely",
        "A host advertises its loopback address, and the group cannot form.",
        [
            *quotes(said, 2),
            *(f"connection attempt to {s.remote}" for s in local[:2]),
            *(seen(situation, p) for p in builders[:2]),
        ],
    )
