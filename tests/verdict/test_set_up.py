"""The set-up of a communicator waits for its members; it is no collective of another order."""

from __future__ import annotations

from tests.rules.building import GLOO_BARRIER, engine, files, log, rank
from watchdog.diagnosis import diagnose
from watchdog.evidence import LogEvent

_CONNECTING = """
poll (libc.so.6)
bootstrapInit (libnccl.so.2)
ncclCommInitRankFunc (libnccl.so.2)
all_gather_into_tensor (torch/distributed/distributed_c10d.py:3902)
join_group (my_rl/transfer.py:77)
"""
_IDLE = "main_loop (ray/_private/worker.py:964)\n<module> (default_worker.py:321)"
_MUCH_LATER = log("queue sizes: 0", "other.log", 9, kind="ray_idle", time_s=2000.0)


def kept(engine_index: int) -> LogEvent:
    return log(
        "weights group wg0 already exists here, join skipped",
        "engine.log",
        kind="group_kept",
        time_s=100.0,
        engine=engine_index,
    )


def test_an_engine_that_kept_its_old_group_holds_up_the_set_up_of_the_new_one() -> None:
    found = diagnose(
        files(
            rank(0, _CONNECTING),
            rank(1, GLOO_BARRIER),
            engine(0, _CONNECTING),
            engine(1, _IDLE),
            log_events=(kept(1), _MUCH_LATER),
        )
    )

    assert found.verdict.state == "hung"
    assert [c.engine for c in found.verdict.culprits] == [1]
    assert (found.causes[0].rule, found.causes[0].confidence) == ("stale-update-group", "likely")


def test_an_engine_that_idles_while_the_others_join_is_the_missing_member() -> None:
    found = diagnose(
        files(
            rank(0, _CONNECTING, _CONNECTING),
            engine(0, _CONNECTING),
            engine(1, _IDLE),
            engine(2, _CONNECTING),
        )
    )

    assert [c.engine for c in found.verdict.culprits] == [1]
    assert found.causes[0].cause_class == "group_rendezvous"


def test_one_look_at_an_engine_that_joins_later_than_another_accuses_nobody() -> None:
    found = diagnose(files(rank(0, _CONNECTING), engine(0, _CONNECTING), engine(1, _IDLE)))

    assert found.verdict.state == "unknown"
    assert found.verdict.culprits == ()


def test_a_set_up_beside_a_barrier_of_another_group_is_no_mismatch() -> None:
    found = diagnose(files(rank(0, _CONNECTING), rank(1, GLOO_BARRIER), rank(2, GLOO_BARRIER)))

    assert all(cause.cause_class != "collective_mismatch" for cause in found.causes)
