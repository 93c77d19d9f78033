"""Several pipeline stages each connect to several engines that are not colocated.

What can happen
    At the first connect the stages create their groups with the engines in different orders,
    and each waits for another.

What decides
    Whether the framework serialises the creation of groups (its version); with one engine or
    one stage there is nothing to cross.

What to do
    Update the framework, or start with one engine or one stage.

Source
    https://github.com/THUDM/slime/pull/2331
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "group-creation-cycle"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    switches = launch.switches
    stages = switches.number("pipeline_model_parallel_size") or 1
    gpus = switches.number("rollout_num_gpus") or 0
    engines = gpus / (switches.number("rollout_num_gpus_per_engine") or 1)
    addresses = switches.value("rollout_external_engine_addrs")
    if isinstance(addresses, str):
        engines = max(engines, len(addresses.replace(",", " ").split()))
    if stages < 2 or engines < 2 or launch.shares_devices:
        return None
    names = ("pipeline_model_parallel_size", "rollout_num_gpus", "rollout_num_gpus_per_engine")
    return Seen(
        "suspect", (*launch.shown(*names, "rollout_external_engine_addrs"), "no --colocate")
    )
