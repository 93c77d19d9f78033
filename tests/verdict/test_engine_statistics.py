"""What the statistics of an engine say while a driver waits: it generates on, or it is frozen."""

from __future__ import annotations

from tests.rules.building import engine, files, log, rank, sample
from watchdog.diagnosis import diagnose
from watchdog.evidence import Evidence, LogEvent, Process

_IDLE = "main_loop (ray/_private/worker.py:964)"
_ROLLOUT = """
get (ray/_private/worker.py:2961)
collect_rollouts (my_rl/loop.py:70)
"""
_LOOP = (
    "select (selectors.py:468)\nrun_forever (asyncio/base_events.py:641)\nsync (my_rl/loop.py:8)"
)


def driver(stack: str, at: float) -> Process:
    return Process("driver", "driver", pid=5, stacks=(sample(stack, at=at),))


def loads(throughput: str, *tokens: int, index: int = 3) -> list[LogEvent]:
    return [
        log(
            f"running 4, {number} tokens, {throughput} a second",
            f"engine_{index}.log",
            20 + i,
            "engine_load",
            time_s=1000.0 + 10 * i,
            engine=index,
            fields={"running": "4", "tokens": str(number), "throughput": throughput},
        )
        for i, number in enumerate(tokens)
    ]


def generating(looked_at: float) -> Evidence:
    growing = loads("250.0", *range(100, 1200, 100))
    member = engine(3, pid=None)
    return files(rank(0, _IDLE), driver(_ROLLOUT, looked_at), member, log_events=tuple(growing))


def test_an_engine_that_generates_until_the_look_makes_the_driver_wait_and_is_slow() -> None:
    verdict = diagnose(generating(1095.0)).verdict

    assert verdict.state == "slow"
    assert [c.engine for c in verdict.culprits] == [3]


def test_an_engine_whose_log_ends_long_before_the_look_is_not_said_to_generate() -> None:
    assert diagnose(generating(9000.0)).verdict.state != "slow"


def paused(throughput: str) -> Evidence:
    begun = log(
        "pause requested",
        "engine_3.log",
        2,
        "engine_control",
        time_s=500.0,
        engine=3,
        fields={"op": "pause", "stage": "begin"},
    )
    still = loads(throughput, *[70] * 11)
    return files(rank(0, _IDLE), driver(_LOOP, 1100.0), engine(3), log_events=(begun, *still))


def test_a_pause_that_waits_for_requests_without_tokens_holds_up_the_sync() -> None:
    found = diagnose(paused("0.0"))

    assert found.verdict.state == "hung"
    assert [c.engine for c in found.verdict.culprits] == [3]
    assert found.causes[0].cause_class == "engine_rpc_stuck"


def test_a_pause_that_waits_for_requests_that_get_tokens_is_legal() -> None:
    assert diagnose(paused("12.5")).verdict.state != "hung"
