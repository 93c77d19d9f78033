"""Logs of the survivors alone: a peer ended, and nobody waited too long."""

from __future__ import annotations

import pytest

from tests.rules import stacks
from tests.rules.building import files, log, rank
from watchdog.diagnosis import diagnose
from watchdog.evidence import Evidence, LogEvent

CLOSED = (
    "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:10129."
    " This is typically caused by a remote worker crashing."
)
LATE = "RuntimeError: Timed out waiting 1800000ms for recv operation to complete"


def lost(number: int, text: str = CLOSED, how: str = "closed") -> LogEvent:
    return log(text, f"rank{number}.log", 4, "gloo_peer_closed", rank=number, fields={"how": how})


def survivors(*ranks: int, **more: object) -> Evidence:
    events = tuple(lost(number) for number in ranks)
    return files(*(rank(number) for number in ranks), log_events=events, **more)


def test_the_rank_of_which_no_log_tells_is_the_suspect() -> None:
    found = diagnose(survivors(0, 2))

    assert found.verdict.state == "crashed"
    assert [c.rank for c in found.verdict.culprits] == [1]
    assert "ranks 0, 2 lost the connection" in found.verdict.reason


def test_nobody_is_told_to_take_stacks_of_a_rank_that_ended() -> None:
    asked = diagnose(survivors(0, 2)).collect_next

    assert asked[0].startswith("How rank 1 ended")
    assert not any("Stacks of rank 1" in step for step in asked)


@pytest.mark.parametrize(("ranks", "world_size"), [((0, 1), None), ((0, 1), 32)])
def test_where_nobody_or_nearly_everybody_is_missing_none_is_named(ranks, world_size) -> None:
    verdict = diagnose(survivors(*ranks, world_size=world_size)).verdict

    assert verdict.state == "crashed"
    assert verdict.culprits == ()


def test_after_a_time_out_a_closed_connection_says_nothing_on_the_silent_rank() -> None:
    events = (log(LATE, "rank0.log", 1, "gloo_recv_timeout", rank=0), lost(0), lost(2))

    verdict = diagnose(files(rank(0), rank(2), log_events=events)).verdict

    assert (verdict.state, verdict.culprits) == ("hung", ())


def test_a_stack_at_hand_outranks_the_closed_connections() -> None:
    events = (lost(0), lost(2))

    verdict = diagnose(files(rank(0, stacks.GLOO_BARRIER), rank(2), log_events=events)).verdict

    assert [c.rank for c in verdict.culprits] != [1]
