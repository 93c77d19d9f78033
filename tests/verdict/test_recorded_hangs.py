"""Evidence of real jobs that hung, as the watchdog and a look at the engine wrote it down.

One file a program of `tests/hangs`; the answers are those of the programs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from watchdog.diagnosis import diagnose
from watchdog.evidence import Evidence
from watchdog.serialization import evidence_from_json

RECORDED = Path(__file__).parent / "recorded"

# Program: states, culprits (of a tuple inside any one will do), places, class of the first cause
# (None: none needs to be claimed).
ANSWERS: dict[str, tuple[tuple[str, ...], tuple[object, ...], tuple[str, ...], str | None]] = {
    "barrier_of_a_subset": (
        ("hung",),
        ("rank 2",),
        ("wait_for_next_rollout",),
        "rank_subset_collective",
    ),
    "different_collectives": (
        ("hung",),
        ("rank 1",),
        ("all_reduce", "average_adapter_norm"),
        "collective_mismatch",
    ),
    "engine_answers_late": (
        ("slow",),
        (("engine 0 worker 0", "engine 0"),),
        ("load_weights_slowly",),
        "slow_not_hung",
    ),
    "engine_dead": (("crashed",), ("engine 0",), ("exit status 1",), "engine_dead"),
    "engine_error_ignored": (
        ("hung",),
        (("rank 0", "engine 0"),),
        ("wait_for_weight_version",),
        None,
    ),
    "engine_never_answers": (
        ("hung",),
        ("engine 0",),
        ("wait_for_running_requests",),
        "engine_rpc_stuck",
    ),
    "engine_never_resumed": (
        ("hung",),
        ("engine 0",),
        ("wait_until_generation_continues",),
        "engine_rpc_stuck",
    ),
    "engine_worker_dead": (
        ("crashed",),
        (("engine 0 worker 0", "engine 0"),),
        ("killed", "signal 9", "zombie"),
        "engine_dead",
    ),
    "forked_with_lock_held": (
        ("hung",),
        ("rank 1",),
        ("read_from_worker",),
        "lock_deadlock",
    ),
    "gather_against_send": (
        ("hung",),
        ("rank 0",),
        ("send_bucket",),
        "collective_mismatch",
    ),
    "gil_held": (("hung",), ("rank 1",), ("pack_bucket",), "gil_held"),
    "groups_crosswise": (("hung",), ("rank 1",), ("meet_in",), "collective_mismatch"),
    "killed": (("crashed",), ("rank 1",), ("read_weights",), "oom_or_killed"),
    "lock_left_held": (("hung",), ("rank 1",), ("acquire_engine_lock",), "lock_deadlock"),
    "new_group_never_joined": (("hung",), ("rank 2",), ("wake_up",), "group_rendezvous"),
    "out_of_memory": (("crashed",), ("rank 2",), ("out of memory",), "oom_or_killed"),
    "paused_memory_read_by_tobytes": (
        ("hung",),
        ("rank 1",),
        ("serialize",),
        "paused_memory_read",
    ),
    "paused_memory_read_by_torch": (
        ("hung",),
        ("rank 1",),
        ("checksum_of",),
        "paused_memory_read",
    ),
    "raised_and_in_cleanup": (("hung", "crashed"), ("rank 2",), ("flush_metrics",), None),
    "rank_never_arrives": (("hung",), ("rank 1",), ("load_reward_model",), None),
    "rank_zero_never_arrives": (("hung",), ("rank 0",), ("write_rollout_table",), None),
    "slow_disk": (("slow",), ("rank 1",), ("save_shard",), "slow_not_hung"),
    "stopped": (("hung",), ("rank 1",), ("stopped",), None),
    "threads_deadlocked": (
        ("hung",),
        ("rank 1",),
        ("offload_then_send", "send_then_offload"),
        "lock_deadlock",
    ),
    "three_ways_at_once": (
        ("crashed", "hung"),
        ("rank 2", "rank 4", "rank 6"),
        ("pack_bucket", "stopped"),
        None,
    ),
}


def recorded(name: str) -> Evidence:
    return evidence_from_json((RECORDED / f"{name}.json").read_text())


def test_every_recording_has_an_answer() -> None:
    assert {path.stem for path in RECORDED.glob("*.json")} == set(ANSWERS)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_state_culprit_and_place_are_right(name: str) -> None:
    states, culprits, places, _ = ANSWERS[name]

    verdict = diagnose(recorded(name)).verdict

    named = {culprit.process for culprit in verdict.culprits}
    assert verdict.state in states
    for wanted in culprits:
        assert named & set(wanted if isinstance(wanted, tuple) else (wanted,)), named
    assert len(named) <= len(culprits)
    assert any(place in c.where + c.why for place in places for c in verdict.culprits)


@pytest.mark.parametrize("name", sorted(name for name in ANSWERS if ANSWERS[name][3]))
def test_the_first_cause_has_the_right_class(name: str) -> None:
    causes = diagnose(recorded(name)).causes

    assert causes[0].cause_class == ANSWERS[name][3]


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_rank_of_the_job_is_accounted_for(name: str) -> None:
    evidence = recorded(name)

    verdict = diagnose(evidence).verdict

    in_groups = [rank for group in verdict.groups for rank in group.ranks]
    assert sorted([*in_groups, *verdict.unaccounted]) == list(range(evidence.world_size or 0))
    keys = [key for group in verdict.groups for key in group.processes]
    assert sorted(keys) == sorted(process.key for process in evidence.processes)
