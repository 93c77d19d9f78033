"""The update group was announced with more members than join it.

What hangs
    All members that did come, in the creation of the communicator.

How it shows
    The announced `world_size` is larger than the number of processes in the rendezvous; engine
    workers that should have been told sit idle in their message loop (with data parallelism, the
    init request reached one replica only).

What to do
    Make the world size 1 + the sum of tp·pp·dp over the engines, and send the init request to
    every replica.

Not to be confused with
    An engine that died; a group of the right size whose member is late.

Source
    https://github.com/NovaSky-AI/SkyRL/issues/1398
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import engines, peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation
from watchdog.verdict import (
    network,
)

CAUSE_CLASS: Final = "group_rendezvous"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    inside = network.building(situation)
    if not inside or not peers.hung(situation):
        return None
    announced = [
        int(e.fields["world_size"])
        for e in situation.evidence.log_events
        if e.kind == "group_join" and e.fields.get("world_size", "").isdigit()
    ]
    idle = list(engines.members(situation, "idle"))
    joined = [p for p in inside if p.role == "trainer" or p.role == "engine_worker"]
    short = bool(announced) and max(announced) > len(joined)
    if idle and any(p.role != "trainer" for p in inside):
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed" if short else "likely",
            f"{len(joined)} processes build the update group"
            + (f" of {max(announced)}" if short else "")
            + f", {len(idle)} engine workers are idle.",
            [*(seen(situation, p) for p in idle[:3]), *(seen(situation, p) for p in joined[:3])],
            culprits=idle,
        )
    return None
