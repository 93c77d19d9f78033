"""The job asks for more than its cluster has, and waits for it for ever.

What hangs
    The driver, in `ray.get` or `ray.wait` of a placement group, before any rank or engine exists.

How it shows
    The group stays `PENDING`; `ray status` lists a demand of more GPUs than the cluster has, with
    no node on its way; `The following resource request cannot be scheduled right now` again and
    again.

What to do
    Add up what trainer and engines ask for. Share the GPUs (`--colocate`), ask for fewer, or add
    nodes.

Not to be confused with
    A cluster whose GPUs another job, or the remains of one, still holds.

Source
    https://github.com/rllm-org/rllm/issues/35
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quotes, seen
from watchdog.situation import Situation
from watchdog.verdict import launch

CAUSE_CLASS: Final = "config_invalid"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    waiting = launch.waits_for_resources(situation)
    lack = launch.shortage(situation)
    refused = [e for e in situation.evidence.log_events if e.kind == "resources_lacking"]
    if not waiting or (lack is None and not refused):
        return None
    supports = [*quotes(lack.events if lack else (), 3), *quotes(refused[-1:], 1)]
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if lack else "possible",
        f"It waits for {lack.wanted:g} GPUs of a cluster that has {lack.total:g}."
        if lack
        else "It waits for resources that are not granted.",
        [*supports, seen(situation, waiting[0])],
        culprits=waiting[:1],
    )
