"""What a verdict says of hosts of which nothing is heard."""

from __future__ import annotations

from dataclasses import replace

from tests.rules import cases_of_hosts
from tests.rules.building import GLOO_BARRIER, live, position, rank
from watchdog.diagnosis import diagnose

CUT_OFF = cases_of_hosts.silent_host__fires_outside_of_the_sync_when_last_heard_of()


def test_it_names_host_ranks_and_the_last_sign_of_life() -> None:
    verdict = diagnose(CUT_OFF).verdict

    assert verdict.reason == (
        "Host node-1 with ranks 2-3 is silent: its last sign of life came 15 s before this, "
        "at 22:13:04 UTC."
    )
    assert [(one.rank, one.host) for one in verdict.culprits] == [(2, "node-1"), (3, "node-1")]
    assert verdict.chain == ("ranks 0-1 wait in barrier for ranks 2-3",)


def test_of_ranks_that_never_said_where_they_are_it_says_no_more_than_that() -> None:
    lost = [
        rank(number, status_detail="no answer: its host could not be reached") for number in (2, 3)
    ]

    verdict = diagnose(live(*CUT_OFF.processes[:2], *lost)).verdict

    assert verdict.reason == "The host of ranks 2-3 is silent: it could not be reached."


def test_a_rank_with_a_stack_that_is_odd_is_the_better_suspect() -> None:
    reads = rank(1, "read_weights (x.py:1)", host="node-0", position=position("read_weights"))
    processes = (CUT_OFF.processes[0], reads, *CUT_OFF.processes[2:])

    reason = diagnose(replace(CUT_OFF, processes=processes)).verdict.reason

    assert "is silent" not in reason


def test_what_to_collect_next_is_to_be_had_on_the_silent_host() -> None:
    asked = diagnose(CUT_OFF).collect_next

    assert asked[0].startswith("What ranks 2-3 do: on node-1 run `miles-watchdog attach")
    assert not any("--pid 1002" in command for command in asked)


def test_a_waiting_host_is_not_silent() -> None:
    place = position("barrier:entry", "barrier", sequence=2)
    ranks = [rank(number, GLOO_BARRIER, host="node-0", position=place) for number in range(2)]

    assert "silent" not in diagnose(live(*ranks)).verdict.reason
