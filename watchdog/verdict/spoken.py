"""What the logs alone say: counters of NCCL's watchdog, and barriers that name the missing."""

from __future__ import annotations

import re

from watchdog.findings import Culprit
from watchdog.situation import Situation
from watchdog.verdict.judgement import Judgement, accused, rank_range


def counters(situation: Situation) -> dict[int, tuple[int, int]]:
    """Rank to last enqueued and last completed work, from the watchdog's status lines."""
    found: dict[int, tuple[int, int]] = {}
    for event in situation.evidence.log_events:
        enqueued = event.fields.get("last_enqueued", "")
        completed = event.fields.get("last_completed", "")
        if event.rank is None or event.engine is not None:
            continue
        if enqueued.lstrip("-").isdigit() and completed.lstrip("-").isdigit():
            found[event.rank] = (int(enqueued), int(completed))
    return found


def behind(situation: Situation) -> dict[int, tuple[int, int]]:
    """The minority of ranks that have enqueued less than the others; empty where all are equal."""
    found = counters(situation)
    if len({enqueued for enqueued, _ in found.values()}) < 2:
        return {}
    lowest = min(enqueued for enqueued, _ in found.values())
    late = {rank: both for rank, both in found.items() if both[0] == lowest}
    return late if len(late) * 2 <= len(found) else {}


def named_missing(situation: Situation) -> tuple[tuple[int, ...], str]:
    """Ranks that rank 0's monitored barrier missed, and its line.

    What the other ranks say of rank 0 at that moment is circular and not believed.
    """
    for event in situation.log(r"Ranks? [\d, ]+ failed to pass"):
        found = re.search(r"Ranks? ([\d, ]+?) failed to pass", event.text)
        if found:
            return tuple(int(n) for n in re.findall(r"\d+", found[1])), event.text.splitlines()[0]
    return (), ""


def missing_by_name(situation: Situation) -> Judgement | None:
    """Who a monitored barrier missed."""
    ranks, line = named_missing(situation)
    if not ranks:
        return None
    return _hung(situation, ranks, f"`{line.strip()[:160]}`")


def behind_by_count(situation: Situation) -> Judgement | None:
    """Who has enqueued less than the others; or that all have enqueued the same."""
    late = behind(situation)
    if late:
        others = {both for rank, both in counters(situation).items() if rank not in late}
        return _hung(situation, tuple(late), f"enqueued {late}, the others {sorted(others)}")
    if situation.logs.first_time_out is None:
        return None
    count = len(counters(situation))
    equal = f" {count} ranks stand at the same number." if count > 1 else ""
    return Judgement("hung", f"A wait was given up as too long.{equal}")


def _hung(situation: Situation, ranks: tuple[int, ...], why: str) -> Judgement:
    culprits = tuple(
        accused(situation, process, why)
        if (process := situation.trainer(rank)) is not None
        else Culprit(f"rank {rank}", "not in the collective of the others", why, rank=rank)
        for rank in ranks
    )
    reason = f"{rank_range(sorted(ranks))} did not come: {why}."
    return Judgement(
        "hung", reason, culprits, (f"the others wait for {rank_range(sorted(ranks))}",)
    )
