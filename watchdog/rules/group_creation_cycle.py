"""Two ranks create their update groups through engines that answer one call at a time, crosswise.

What hangs
    The source ranks in `ray.get` or in the rendezvous; the engines each in the creation of
    another group; the other trainers in the barrier.

How it shows
    Pipeline parallelism above 1 and at least two engines, not colocated; engines in
    `init_weights_update_group` with different group names.

What to do
    Create the groups one after the other, under the engine lock, or let the engines join
    concurrently.

Not to be confused with
    group_never_joined, with one group only.

Source
    https://github.com/THUDM/slime/pull/2331
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "lock_deadlock"
FLAGS = ("pipeline_model_parallel_size",)


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    joining = situation.at(
        r"init_weights_update_group|init_custom_process_group", among=situation.engines
    )
    sources = situation.at(r"connect_rollout_engines")
    calling = [p for p in sources if situation.wait(p).kind in ("rpc", "rendezvous", "store")]
    names = {
        e.fields.get("group", "")
        for e in situation.evidence.log_events
        if e.kind == "group_join" and e.engine is not None
    } - {""}
    engines_joining = {p.engine for p in joining}
    if (
        len(calling) >= 2
        and (len(names) >= 2 or len(engines_joining) >= 2)
        and peers.hung(situation)
    ):
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed" if len(names) >= 2 and len(engines_joining) >= 2 else "likely",
            "Engines wait in different groups for each other.",
            [
                *(seen(situation, p) for p in (*calling[:2], *joining[:2])),
                *(f"group {n}" for n in sorted(names)),
            ],
            culprits=calling,
        )
    return None
