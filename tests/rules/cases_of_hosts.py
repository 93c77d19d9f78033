"""Hosts of which nothing is heard, and hosts of which something is."""

from __future__ import annotations

from tests.rules.building import GLOO_BARRIER, live, position, rank
from watchdog.evidence import Evidence, Position, Process

_WAITS = position("barrier:entry", "barrier", sequence=2)


def _waiting(number: int, host: str) -> Process:
    return rank(number, GLOO_BARRIER, host=host, position=_WAITS)


def _unheard(number: int, place: Position | None = None) -> Process:
    return rank(
        number,
        host="node-1",
        status_detail="no answer from host node-1; last heard of 15 s ago",
        position=place or Position("", heartbeat_age_s=15.4),
    )


def silent_host__fires_outside_of_the_sync_when_last_heard_of() -> Evidence:
    """The link was cut before its ranks entered the sync, or could say so."""
    others = (_waiting(0, "node-0"), _waiting(1, "node-0"))
    return live(*others, _unheard(2), _unheard(3), collected_at_s=1_700_000_000.0)


def silent_host__fires_in_the_same_barrier_when_last_heard_of() -> Evidence:
    """What a host said last proves nothing of what its ranks do."""
    others = (_waiting(0, "node-0"), _waiting(1, "node-0"))
    return live(*others, _unheard(2, _WAITS), _unheard(3, _WAITS))


def silent_host__silent_the_other_rank_of_the_host_answers() -> Evidence:
    return live(_waiting(0, "node-0"), _waiting(1, "node-0"), _waiting(2, "node-1"), _unheard(3))


def missing_rank__silent_its_whole_host_is() -> Evidence:
    return silent_host__fires_outside_of_the_sync_when_last_heard_of()
