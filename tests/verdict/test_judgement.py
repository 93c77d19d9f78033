"""Slow or hung, who is missing, what is legal, and what a verdict admits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.rules import stacks
from tests.rules.building import engine, files, flags, live, log, position, rank, sample
from watchdog.diagnosis import diagnose
from watchdog.diagnosis.collect_next import collect_next
from watchdog.diagnosis.policy import admitted, yielding
from watchdog.evidence import ActivitySample, Mark, Position, Socket
from watchdog.findings import Finding, Verdict
from watchdog.reports import REPORTS
from watchdog.rules import RULES
from watchdog.serialization import evidence_from_json
from watchdog.signs.answers import quotes
from watchdog.situation import Situation, lines
from watchdog.situation.pace import pace_of

ALL = (0, 1, 2, 3)
CASES = Path(__file__).parents[1] / "rules" / "gil_held"


def in_barrier(*ranks: int) -> list:
    where = position("barrier:exit", "barrier", "gloo", 7, ALL)
    return [rank(r, stacks.GLOO_BARRIER, position=where) for r in ranks]


def test_few_of_many_ranks_in_the_entry_barrier_prove_nothing() -> None:
    found = diagnose(
        files(rank(3, stacks.GLOO_BARRIER), rank(21, stacks.GLOO_BARRIER), world_size=32)
    )

    assert found.verdict.state == "unknown"
    assert found.verdict.culprits == ()
    assert len(found.verdict.unaccounted) == 30
    assert any("py-spy" in command for command in found.collect_next)


def test_a_rank_of_a_live_job_that_is_not_heard_of_is_the_suspect() -> None:
    verdict = diagnose(live(*in_barrier(0, 1, 3), world_size=4)).verdict

    assert verdict.state == "hung"
    assert [c.rank for c in verdict.culprits] == [2]
    assert verdict.unaccounted == (2,)


def test_a_rank_that_left_the_sync_by_an_exception_is_said_to_have() -> None:
    ended = (Mark("section", "weight_sync", 8.0), Mark("section_end", "weight_sync", 7.0, "raised"))
    left = rank(2, "flush (x.py:1)", position=Position("", history=ended))

    verdict = diagnose(live(*in_barrier(0, 1), left)).verdict

    assert verdict.culprits[0].why.endswith("after an exception ended its weight_sync")


def test_rank_zero_in_a_call_is_legal_while_it_is_young() -> None:
    young = files(rank(0, stacks.RAY_GET), rank(1, stacks.GLOO_BARRIER))

    assert diagnose(young).verdict.state == "unknown"


def test_a_chain_is_followed_to_the_dead_worker_of_the_engine() -> None:
    listens = (Socket("10.0.0.2:30000", state="LISTEN"),)
    calls = (Socket("10.0.0.1:5", "10.0.0.2:30000", "ESTABLISHED"),)
    caller = rank(0, stacks.HTTP_POST, position=position("send_chunk"), sockets=calls)
    worker = engine(1, worker=0, status="dead", status_detail="killed by signal 9")

    verdict = diagnose(
        live(caller, *in_barrier(1, 2, 3), engine(1, sockets=listens), worker)
    ).verdict

    assert verdict.state == "crashed"
    assert [c.process for c in verdict.culprits] == ["engine 1 worker 0"]


def test_the_connection_tells_which_of_two_engines_is_called() -> None:
    def server(index: int) -> object:
        socket = Socket(f"10.0.0.2:3000{index}", state="LISTEN")
        wait = "wait (threading.py:355)\nhold (server.py:71)\ndo_POST (server.py:99)"
        loop = "select (selectors.py:415)\nserve_forever (socketserver.py:232)"
        stack = sample(loop, wait) if index == 1 else sample(loop)
        return engine(index, stack, sockets=(socket,))

    calls = (Socket("10.0.0.1:5", "10.0.0.2:30001", "ESTABLISHED"),)
    caller = rank(0, stacks.HTTP_POST, position=position("send_chunk"), sockets=calls)

    verdict = diagnose(live(caller, *in_barrier(1, 2, 3), server(0), server(1))).verdict

    assert [c.engine for c in verdict.culprits] == [1]
    assert any("engine 1" in link for link in verdict.chain)


def test_bytes_that_grow_are_progress() -> None:
    before, after = ActivitySample(10.0, read_bytes=0), ActivitySample(20.0, read_bytes=90_000_000)
    reader = rank(2, stacks.CHECKPOINT_READ, activity=(before, after))

    verdict = diagnose(live(*in_barrier(0, 1, 3), reader)).verdict

    assert verdict.state == "slow"
    assert "9.0 MB/s" in verdict.progress


def test_fresh_marks_in_the_black_box_are_progress() -> None:
    marks = tuple(Mark("phase", "send_chunk", age_s=age) for age in (3.0, 2.0, 1.0, 0.2))
    sender = rank(2, "pack (my/pack.py:3)", position=position("send_chunk", age=9.0, marks=marks))

    assert diagnose(live(*in_barrier(0, 1, 3), sender)).verdict.state == "slow"


def test_burning_cpu_in_a_collective_is_no_progress() -> None:
    spins = (ActivitySample(10.0, cpu_s=1.0), ActivitySample(20.0, cpu_s=11.0))
    where = position("sync", "all_reduce", "", 7, (0, 1))
    ranks = [rank(r, stacks.GLOO_BARRIER, position=where, activity=spins) for r in (0, 1)]

    assert diagnose(live(*ranks)).verdict.state == "hung"


def test_the_rank_with_the_lowest_number_is_behind() -> None:
    behind = rank(3, stacks.GLOO_BARRIER, position=position("sync", "barrier", "gloo", 6, ALL))

    verdict = diagnose(live(*in_barrier(0, 1, 2), behind)).verdict

    assert [c.rank for c in verdict.culprits] == [3]


def test_an_end_after_a_time_out_is_a_consequence() -> None:
    late = log(
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3",
        line=1,
        kind="nccl_watchdog_timeout",
        rank=1,
        time_s=10.0,
    )
    gone = rank(1, status="dead", status_detail="exit code -6")
    away = "load_rows (my/load.py:3)\nmain (train.py:9)"

    verdict = diagnose(files(rank(0, away, away), gone, log_events=(late,))).verdict

    assert [c.rank for c in verdict.culprits] == [0]


def test_an_error_that_was_survived_is_no_cause() -> None:
    error = log(
        "ValueError: bad reply",
        line=1,
        kind="traceback",
        rank=0,
        time_s=5.0,
        fields={"exception": "ValueError"},
    )
    done = log("Timer update_weights end (elapsed: 7.0s)", line=2, rank=0, time_s=60.0)

    found = diagnose(files(*in_barrier(0, 1, 2, 3), log_events=(error, done)))

    assert found.verdict.state != "crashed"


def test_the_evidence_without_anything_is_unknown() -> None:
    found = diagnose(files())

    assert (found.verdict.state, found.causes) == ("unknown", ())


@pytest.mark.parametrize("with_ranks", [False, True])
def test_flags_alone_never_reach_beyond_possible(with_ranks: bool) -> None:
    wild = flags(
        lora_rank=32,
        colocate=True,
        offload_train=True,
        disable_weights_backuper=True,
        distributed_timeout_minutes=60,
        pause_generation_mode="retract",
        fully_async=True,
        hybrid_engine=True,
    )
    variables = {
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "GLOO_SOCKET_IFNAME": "^docker0",
        "SGLANG_MEMORY_SAVER_CUDA_GRAPH": "1",
    }
    ranks = [rank(r, stacks.GLOO_BARRIER) for r in (3, 21)] if with_ranks else []

    found = diagnose(files(*ranks, flags=wild, environment=variables, world_size=32))

    assert found.causes
    assert {cause.confidence for cause in found.causes} == {"possible"}


def test_nothing_structural_is_claimed_beside_a_death() -> None:
    claims = [
        Finding("a", "engine_dead", "likely", ""),
        Finding("b", "rank_subset_collective", "confirmed", ""),
        Finding("c", "group_rendezvous", "likely", "", supports=("x: already initialized",)),
    ]

    kept = admitted("crashed", claims, "already initialized")

    assert [finding.rule for finding in kept] == ["a", "c"]


def test_a_broken_rule_costs_only_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(situation: Situation) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(RULES[0], "diagnose", broken)

    found = diagnose(live(*in_barrier(0, 1, 3), rank(2, status="stopped")))

    assert found.verdict.state == "hung"
    assert "failed" in caplog.text


def test_a_counter_gives_rate_and_estimated_end() -> None:
    def counted(time_s: float, done: int) -> object:
        fields = {"name": "bucket", "done": str(done), "total": "100"}
        return log("bucket", kind="progress", time_s=time_s, fields=fields)

    text = pace_of([counted(0.0, 10), counted(10.0, 30)])  # type: ignore[list-item]

    assert text == "bucket 30/100, 2 a second, about 35 s to go"


def test_a_general_rule_yields_to_a_specific_one() -> None:
    general = Finding("engine-never-answers", "engine_rpc_stuck", "likely", "")
    specific = Finding("gil-held", "gil_held", "confirmed", "")

    beside = yielding([specific, general], {"engine-never-answers"})
    alone = yielding([general], {"engine-never-answers"})

    assert [f.confidence for f in beside] == ["confirmed", "possible"]
    assert [f.confidence for f in alone] == ["likely"]


def test_what_to_collect_names_the_suspect_by_its_process() -> None:
    odd = rank(2, "load_rows (my/load.py:3)\nmain (train.py:9)", pid=4711)

    asked = diagnose(live(*in_barrier(0, 1, 3), odd)).collect_next

    assert any("--native --pid 4711" in command for command in asked)
    assert any("second sample of rank 2" in command.lower() for command in asked)


def test_a_confirmed_cause_needs_nothing_more() -> None:
    gone = rank(2, status="dead", status_detail="killed by signal 9", position=position("sync"))

    assert diagnose(live(*in_barrier(0, 1, 3), gone)).collect_next == ()


def test_engines_are_not_asked_for_where_the_whole_job_was_seen_without_any() -> None:
    odd = rank(2, "load_rows (my/load.py:3)\nmain (train.py:9)", pid=4711)

    watched = diagnose(live(*in_barrier(0, 1, 3), odd)).collect_next
    handed_over = diagnose(files(*in_barrier(0, 1, 3), odd)).collect_next

    assert not any("rollout engines" in step for step in watched)
    assert any("rollout engines" in step for step in handed_over)
    assert "rollout engines" not in handed_over[0]


def test_who_keeps_the_gil_and_moves_is_not_hung() -> None:
    hung = evidence_from_json((CASES / "fires_lock_of_the_driver.json").read_text())
    before, after = (
        ActivitySample(taken_at_s=float(t), read_bytes=t * 10**9, write_bytes=0) for t in (1, 4)
    )
    moving = replace(
        hung,
        processes=tuple(replace(p, activity=(before, after)) for p in hung.processes),
    )

    assert diagnose(hung).verdict.state == "hung"
    assert diagnose(moving).verdict.state == "slow"


def test_where_nothing_is_wrong_nothing_is_to_be_collected() -> None:
    moving = rank(0, stacks.GLOO_BARRIER, position=position("train", "barrier", "gloo", 7, ALL))
    situation = Situation(files(moving))

    assert collect_next(situation, Verdict("healthy", "rank 0 computes."), ()) == ()
    assert collect_next(situation, Verdict("unknown", "who knows."), ()) != ()


def _died(engine_index: int, **more: object) -> object:
    return log(
        "Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
        "driver.log", 74, "engine_worker_died", engine=engine_index, **more,
    )  # fmt: skip


def test_a_death_is_told_with_its_line_and_its_time() -> None:
    gone = engine(3, status="dead", status_detail="Ray actor DEAD")
    at_0541 = 1_785_390_077.0

    found = diagnose(files(*in_barrier(0, 1), gone, log_events=(_died(3, time_s=at_0541),)))

    (culprit,) = found.verdict.culprits
    assert "Worker proc VllmWorker-1 died unexpectedly" in culprit.where
    assert culprit.why == "engine 3 is dead: Ray actor DEAD (driver.log:74, 05:41:17)"
    assert found.verdict.reason == culprit.why
    assert any(line.startswith("driver.log:74, 05:41:17: ") for line in found.causes[0].supports)


def test_the_end_of_another_engine_is_not_told_as_this_ones() -> None:
    gone = engine(3, status="dead", status_detail="Ray actor DEAD")

    found = diagnose(files(*in_barrier(0, 1), engine(2), gone, log_events=(_died(2),)))

    dead = next(c for c in found.verdict.culprits if c.engine == 3)
    assert dead.why == "engine 3 is dead: Ray actor DEAD"


def test_a_time_that_the_line_has_only_from_its_neighbour_is_not_told() -> None:
    own, borrowed = _died(3, time_s=61.0), _died(3, time_s=61.0, fields={"time_of": "the line"})

    assert lines.cited(own) == "driver.log:74, 00:01:01"
    assert lines.cited(borrowed) == "driver.log:74"
    assert lines.cited(replace(borrowed, file="")) == ""


def test_a_line_that_means_two_things_is_quoted_once() -> None:
    one = _died(3)
    two = replace(one, kind="last_line")

    assert quotes((one, two, _died(3, time_s=61.0)), 2) == [
        "driver.log:74: Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
        "driver.log:74, 00:01:01: Worker proc VllmWorker-1 died unexpectedly, shutting down"
        " executor.",
    ]


def test_nobody_of_whom_nothing_was_seen_is_called_not_moving() -> None:
    gone = engine(3, status="dead", status_detail="killed by signal 9")

    groups = diagnose(files(*in_barrier(0, 1), rank(2), gone)).verdict.groups

    unseen = [group for group in groups if not {"rank 0", "rank 1"} & set(group.processes)]
    assert {group.moving for group in unseen} == {None}
    assert "no stack known" in {group.doing for group in unseen}


def test_of_a_rank_that_failed_nobody_is_asked_to_take_a_stack() -> None:
    failed = log("ValueError: bucket 7", kind="traceback", rank=2, pid=77, time_s=10.0)
    late = log(
        "Timed out waiting 1800000ms for recv", kind="gloo_recv_timeout", rank=0, time_s=20.0
    )

    found = diagnose(files(rank(2, pid=77), log_events=(failed, late), world_size=3))

    assert found.verdict.state == "crashed"
    assert not any("--pid 77" in asked for asked in found.collect_next)
    assert not any("rollout engines" in asked for asked in found.collect_next)


def test_stacks_of_unknown_ranks_are_said_to_be_so() -> None:
    nameless = [
        replace(one, key=f"pid {n}", rank=None, pid=n) for n, one in enumerate(in_barrier(0, 1))
    ]

    found = diagnose(files(*nameless))

    assert found.verdict.reason.startswith("Which rank each stack is of is not known")
    assert "Which rank each dump is of" in found.collect_next[0]


def test_a_log_without_any_stack_is_said_to_be_one() -> None:
    found = diagnose(files(rank(0, pid=5), log_events=(log("step 3", kind="progress", rank=0),)))

    assert found.verdict.reason.startswith("No stack is in the evidence")
    assert any(asked.startswith("Two samples of rank 0") for asked in found.collect_next)


def test_the_line_for_a_chat_says_a_reason_once() -> None:
    found = files(*in_barrier(0), world_size=2)

    line = REPORTS["chat"].render(found, diagnose(found), None)

    assert line.lower().count("what is known of the processes is legitimate") == 1
