"""The ranks read a shared state at different moments, and decided differently.

What hangs
    Both parties: each waits for ranks that took the other branch.

How it shows
    A log line gives `name=True` on some ranks and `name=False` on others, and the ranks with the
    one value wait elsewhere than those with the other.

What to do
    Let one rank read the state and broadcast it, or read it on the driver and hand the same value
    to all ranks.

Not to be confused with
    Values that differ on purpose (`is_rank0=True`), where the ranks wait in one place.

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
from watchdog.verdict.groups import class_key

CAUSE_CLASS: Final = "rank_subset_collective"
IS_GENERAL: Final = True


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if not peers.hung(situation):
        return None
    for said in _decisions(situation).values():
        values = {event.fields["value"] for event in said.values()}
        places: dict[object, set[str]] = {}
        for process in peers.waiting(situation):
            if process.rank in said:
                place = class_key(situation.wait(process))
                places.setdefault(place, set()).add(said[process.rank].fields["value"])
        if len(values) < 2 or len(places) < 2 or any(len(v) > 1 for v in places.values()):
            continue
        if len({next(iter(v)) for v in places.values()}) < 2:
            continue
        few = _minority(said)
        ranks = [p for p in peers.waiting(situation) if p.rank in few]
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed",
            "Ranks decided differently before a collective.",
            _supports(situation, said, few),
            culprits=ranks,
        )
    return None


def _supports(situation: Situation, said: dict[int, LogEvent], few: set[int]) -> list[str]:
    many = [rank for rank in sorted(said) if rank not in few]
    shown = [*sorted(few)[:2], *many[:1]]
    stacks = [p for rank in shown if (p := situation.trainer(rank)) is not None]
    return [*(quoted(said[rank]) for rank in shown), *(seen(situation, p) for p in stacks)]


def _decisions(situation: Situation) -> dict[str, dict[int, LogEvent]]:
    """Name to the last line with it of each rank."""
    found: dict[str, dict[int, LogEvent]] = {}
    for event in situation.evidence.log_events:
        if event.kind == "rank_decision" and event.rank is not None and event.engine is None:
            found.setdefault(event.fields["name"], {})[event.rank] = event
    return found


def _minority(said: dict[int, LogEvent]) -> set[int]:
    parties: dict[str, set[int]] = {}
    for rank, event in said.items():
        parties.setdefault(event.fields["value"], set()).add(rank)
    return min(parties.values(), key=len)
