"""The ranks disagree about which engines there are, and only some of them connect.

What hangs
    The ranks that connect, in the creation of a group or a gather; the others in the barrier or
    the bucket loop.

How it shows
    Some ranks under `connect_rollout_engines`, others not, after an engine was recovered or
    added.

What to do
    Read the list of engines once, on the driver, and hand the same one to all ranks.

Not to be confused with
    The first sync, where all ranks connect.

Source
    https://github.com/radixark/miles/pull/947
"""

from __future__ import annotations

from typing import Final

from watchdog.evidence import LogEvent
from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "rank_subset_collective"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    connecting = situation.at(r"connect_rollout_engines|connect_engine|init_weight_update_group")
    others = [p for p in peers.waiting(situation) if p not in connecting]
    own = [p for p in connecting if situation.wait(p).kind in ("rendezvous", "collective", "store")]
    if not own or not others or not peers.hung(situation) or len(connecting) < 2:
        return None
    told = _told_differently(situation)
    if told:
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed",
            "The ranks were told of different engines.",
            [*(quoted(e) for e in told), seen(situation, own[0]), seen(situation, others[0])],
            culprits=others,
        )
    recovered = situation.switches.on(
        "use_fault_tolerance", "fault_tolerance", "ft"
    ) or situation.log(r"recover|restarted engine|engine \d+ (was )?restarted|new engine")
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if recovered else "possible",
        "Only some ranks connect to engines.",
        [seen(situation, own[0]), seen(situation, others[0])],
        culprits=own,
    )


def _told_differently(situation: Situation) -> list[LogEvent]:
    """The last lines of two ranks that disagree on whether there are new engines."""
    last = {e.rank: e for e in situation.evidence.log_events if e.kind == "engine_list"}
    values = {e.fields.get("has_new", ""): e for rank, e in last.items() if rank is not None}
    return list(values.values()) if len(values) > 1 else []
