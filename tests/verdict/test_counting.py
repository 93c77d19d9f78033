"""Counters in logs: what counts on is not hung, what stopped or may have stopped proves nothing."""

from __future__ import annotations

from tests.rules.building import GLOO_BARRIER, engine, files, log, rank, sample
from watchdog.diagnosis import diagnose
from watchdog.evidence import Evidence, LogEvent
from watchdog.situation import Situation

_BACKWARD = """
_engine_run_backward (torch/autograd/graph.py:829)
backward (torch/_tensor.py:625)
train_step (train.py:90)
"""
_TIME_OUT = log("Watchdog caught collective operation timeout", line=1, time_s=100.0, rank=0)


def counted(*times_s: float, name: str = "step", engine: int | None = None) -> list[LogEvent]:
    return [
        log(
            f"{name} {i}",
            line=10 + i,
            kind="progress",
            time_s=time_s,
            engine=engine,
            fields={"name": name, "done": str(i)},
        )
        for i, time_s in enumerate(times_s)
    ]


def looked(time_s: float) -> LogEvent:
    return log("date", "shell.txt", kind="observed_at", time_s=time_s)


def state(evidence: Evidence) -> str:
    return diagnose(evidence).verdict.state


def test_steps_that_go_on_are_health_after_an_old_time_out() -> None:
    steps = counted(600, 720, 840, 960)

    evidence = files(rank(0, _BACKWARD), log_events=(_TIME_OUT, *steps, looked(1000)))

    assert state(evidence) == "healthy"
    assert diagnose(evidence).causes == ()


def test_steps_before_the_time_out_are_no_health() -> None:
    steps = counted(10, 30, 50, 70)

    assert (
        state(files(rank(0, _BACKWARD), log_events=(*steps, _TIME_OUT, looked(110)))) != "healthy"
    )


def test_an_old_last_line_is_no_progress() -> None:
    steps = counted(600, 720, 840, 960)

    assert Situation(files(log_events=(*steps, looked(2000)))).counting == ()


def test_a_log_that_others_outlive_has_stopped() -> None:
    late = log("GET /health", "engine.log", kind="http_access", time_s=2000.0)

    assert Situation(files(log_events=(*counted(600, 720, 840), late, looked(900)))).counting == ()


def test_the_end_of_a_log_alone_tells_nothing() -> None:
    assert Situation(files(log_events=tuple(counted(600, 720, 840, 960)))).counting == ()


def test_shards_that_arrive_are_slowness_of_who_does_not_wait() -> None:
    shards = counted(600, 720, 840, 960, name="shards")
    loading = "select (selectors.py:468)\nrun_forever (asyncio/base_events.py:641)"

    evidence = files(rank(0, loading), rank(1, GLOO_BARRIER), log_events=(*shards, looked(1000)))

    verdict = diagnose(evidence).verdict
    assert verdict.state == "slow"
    assert [c.rank for c in verdict.culprits] == [0]
    assert verdict.progress == "shards 0 to 3, one every 2 min"


def test_a_counter_that_begins_anew_is_counted_from_there() -> None:
    first, second = counted(100, 160, 220), counted(280, 340, 400)

    (counting,) = Situation(files(log_events=(*first, *second, looked(420)))).counting

    assert counting.first.time_s == 280


def test_what_ended_before_a_restart_is_no_sign_now() -> None:
    restart = log("Restarting worker group", line=2, kind="worker_group_restart", time_s=200.0)
    step = log("step 1", line=3, kind="progress", time_s=300.0)

    assert Situation(files(log_events=(_TIME_OUT, restart, step))).logs.first_time_out is None
    assert Situation(files(log_events=(_TIME_OUT, restart))).logs.first_time_out is not None


def test_a_rank_that_computes_is_not_accused_because_logs_are_silent() -> None:
    said = log("rollout 3 done", time_s=1.0)

    evidence = files(
        *(rank(r, GLOO_BARRIER) for r in (1, 2)), rank(0, _BACKWARD), log_events=(said, looked(900))
    )

    assert state(evidence) == "unknown"


def test_silence_of_an_engine_that_generates_for_a_rank_is_legal() -> None:
    waits = """
get_objects (ray/_private/worker.py:958)
get (ray/_private/worker.py:2858)
generate_rollout (trainer.py:9)
"""
    said = log("rollout 3 begins", time_s=1.0)

    assert state(files(rank(0, waits), engine(0), log_events=(said, looked(1200)))) == "unknown"


def test_a_log_that_was_quiet_for_longer_than_usual_when_one_looked_is_no_health() -> None:
    said = [log(f"batch {i}", kind="last_line", time_s=900.0 + 10 * i) for i in range(8)]
    evidence = files(log_events=(*counted(600, 720, 840, 960), *said, looked(1160)))

    verdict = diagnose(evidence).verdict

    assert verdict.state == "unknown"
    assert "00:16:10" in verdict.reason
    assert "pause of 3 min" in verdict.reason


def test_a_look_at_something_else_hours_before_the_log_ends_tells_nothing_of_its_end() -> None:
    steps = counted(9600, 9720, 9840, 9960)

    verdict = diagnose(files(log_events=(*steps, looked(2000)))).verdict

    assert verdict.state == "unknown"
    assert "up to 02:46:00" in verdict.reason


def test_steps_after_a_look_at_the_processes_say_that_it_went_on() -> None:
    idle = sample("main_loop (ray/_private/worker.py:964)", at=700.0)

    verdict = diagnose(files(rank(0, idle), log_events=tuple(counted(600, 720, 840, 960)))).verdict

    assert verdict.state == "healthy"
    assert "after the look at 00:11:40" in verdict.reason
