"""The survivors' logs alone: each lost its connection to a peer that ended."""

from __future__ import annotations

from watchdog.evidence import LogEvent
from watchdog.findings import Culprit
from watchdog.situation import Situation, lines
from watchdog.verdict.judgement import Judgement, names_of, rank_range, unaccounted


def peer_ended(situation: Situation) -> Judgement | None:
    """Ranks failed because a peer closed its connection, and nobody had waited too long.

    An orderly end of a connection is what the kernel sends for a process that is gone. The rank
    of which no log says anything is the suspect, where the survivors are more than such ranks.
    """
    if any(process.stacks for process in situation.evidence.processes):
        return None
    closed = _closed(situation)
    if not closed or situation.logs.matching(lines.TIME_OUT):
        return None
    survivors = tuple(p for p in situation.trainers if p.rank in closed)
    line = next(iter(closed.values()))
    why = lines.with_source(f"{names_of(survivors)} lost the connection to a peer that ended", line)
    silent = [p for p in situation.trainers if p.rank not in closed]
    missing = unaccounted(situation)
    reason = f"{why}; nobody had waited too long."
    if not missing or silent or len(missing) >= len(survivors):
        return Judgement("crashed", f"{reason} Which one ended, these logs do not tell.")
    culprits = tuple(
        Culprit(f"rank {rank}", "ended; no log of it says where", why, rank=rank)
        for rank in missing
    )
    reason += f" Nothing is heard of {rank_range(list(missing))}."
    return Judgement("crashed", reason, culprits)


def _closed(situation: Situation) -> dict[int, LogEvent]:
    """By rank, the line in which it says that a peer closed the connection."""
    found: dict[int, LogEvent] = {}
    for event in situation.evidence.log_events:
        is_closed = event.kind == "gloo_peer_closed" and event.fields.get("how") == "closed"
        if is_closed and event.rank is not None and event.engine is None:
            found.setdefault(event.rank, event)
    return found
