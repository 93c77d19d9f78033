"""What a single look shows for sure: a prompt, a circle of calls, the GIL in one hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules import stacks
from tests.rules.building import files, frames, log, rank, thread
from watchdog.diagnosis import diagnose
from watchdog.evidence import Collective, StackSample, ThreadStack
from watchdog.intake import evidence_from_paths


def test_a_rank_at_the_prompt_of_a_debugger_is_named_by_the_barrier_that_misses_it() -> None:
    at_prompt = "cmdloop (cmd.py:126)\ninteraction (pdb.py:423)\nuser_line (pdb.py:320)"
    missed = log("Rank 3 failed to pass monitoredBarrier in 600000 ms", rank=0, time_s=9.0)

    found = diagnose(
        files(rank(0), rank(3, f"{at_prompt}\nreward (reward.py:9)"), log_events=(missed,))
    )

    assert [c.rank for c in found.verdict.culprits] == [3]
    assert "debugger" in found.verdict.reason
    assert found.causes[0].cause_class == "rank_subset_collective"


def test_a_call_that_waits_for_a_call_of_its_own_actor_waits_for_ever(tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text(
        "TASK_ID  ATTEMPT_NUMBER  NAME  STATE  JOB_ID  ACTOR_ID  TYPE  FUNC_OR_CLASS_NAME"
        "  PARENT_TASK_ID\n"
        "0  aa11aa11  0  Server.chat  RUNNING  01  ffee  ACTOR_TASK  Server.chat  dd44dd44\n"
        "1  bb22bb22  0  Server.encode  PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY  01  ffee"
        "  ACTOR_TASK  Server.encode  aa11aa11\n"
    )
    (tmp_path / "server.txt").write_text(
        'Process 60: ray::Server.chat\n\nThread 61 (idle): "AsyncIO Thread: default"\n'
        "    get (ray/_private/worker.py:2882)\n    chat (app/server.py:9)\n"
        "    _run_once (asyncio/base_events.py:1936)\n"
    )

    found = diagnose(evidence_from_paths([tmp_path]))

    assert found.verdict.state == "hung"
    assert [c.pid for c in found.verdict.culprits] == [60]
    assert found.causes[0].cause_class == "lock_deadlock"


def test_a_thread_of_native_code_alone_does_not_ask_for_the_gil() -> None:
    def native(*names: str) -> str:
        return "\n".join(f"{name} (libc.so.6)" for name in names)

    waiting = native("pthread_cond_timedwait", "take_gil") + "\nwork (a.py:1)"
    owner = ThreadStack(
        "evict", frames(native("rwlock", "cuMemFree") + "\nevict (b.py:2)"), owns_gil=True
    )
    sample = StackSample(
        (thread(waiting), thread(waiting, "beat"), owner, thread(native("poll"), "driver")),
        "pystack",
    )

    found = diagnose(files(rank(1, sample), rank(0, stacks.GLOO_BARRIER)))

    assert found.causes[0].cause_class == "gil_held"


@pytest.mark.parametrize(
    ("names", "is_asked"),
    [(("501.txt", "502.txt", "503.txt"), True), (("rank0.txt", "rank1.txt", "rank2.txt"), False)],
)
def test_dumps_that_only_a_pid_names_are_to_be_named_by_rank(tmp_path, names, is_asked) -> None:
    for number, name in enumerate(names):
        (tmp_path / name).write_text(
            f"Process {501 + number}: /venv/bin/python3 -u train.py --lr 1\n"
            "Python v3.11.2 (/usr/bin/python3.11)\n\n"
            f'Thread {501 + number} (idle): "MainThread"\n'
            "    all_reduce (torch/distributed/distributed_c10d.py:3252)\n"
            "    sync (train.py:19)\n    <module> (train.py:28)\n"
        )

    asked = diagnose(evidence_from_paths([tmp_path])).collect_next

    assert any("name the files by rank (`rank1.txt`)" in step for step in asked) is is_asked


def _fetches(*collectives: Collective) -> list[str]:
    fetching = "recv (zmq/sugar/socket.py:799)\nnext_batch (my_rl/feed.py:9)\nmain (train.py:90)"
    entered = Collective("all_gather", sequence=8)
    others = [rank(r, stacks.GLOO_BARRIER, collectives=(entered,)) for r in (0, 1, 3)]
    twice = rank(2, fetching, fetching, collectives=collectives)
    found = diagnose(files(*others, twice))
    assert all(cause.confidence == "possible" for cause in found.causes)
    return [cause.cause_class for cause in found.causes]


def test_a_rank_that_fetches_data_after_all_that_it_entered_may_have_left_the_others() -> None:
    done = Collective("all_gather", sequence=7, finished=True)

    assert _fetches(done)[0] == "rank_subset_collective"
    assert "rank_subset_collective" not in _fetches()
