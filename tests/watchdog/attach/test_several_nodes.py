"""Folders of several nodes together: one evidence, nothing fused that is two things."""

from __future__ import annotations

from dataclasses import replace

from watchdog.evidence import Evidence, LogEvent, Process, StackSample
from watchdog.intake import evidence_from_paths
from watchdog.intake.merging import merged_evidence
from watchdog.serialization import evidence_to_json

GUESS = "number guessed by the order of start"


def node(number: int, *processes: Process) -> Evidence:
    host = f"node-{number}"
    own = tuple(replace(process, host=host) for process in processes)
    return Evidence("attach", processes=own, world_size=4)


def rank(number: int, pid: int) -> Process:
    return Process(f"rank {number}", "trainer", rank=number, pid=pid)


def engine(number: int, pid: int, by: str) -> Process:
    return Process(f"engine {number}", "engine", engine=number, pid=pid, identified_by=by)


def test_the_ranks_of_all_nodes_are_in_the_verdict_of_the_job(tmp_path):
    for number in (0, 1):
        folder = tmp_path / f"out-{number}"
        folder.mkdir()
        first = 2 * number
        evidence = node(number, rank(first, 100), rank(first + 1, 101))
        (folder / "evidence.json").write_text(evidence_to_json(evidence))
        report = "# HUNG: rank 9 holds up all\n\nwords\n\n| | |\n| --- | --- |\n"
        (folder / "report.md").write_text(report)

    merged = evidence_from_paths([tmp_path / "out-0", tmp_path / "out-1"])

    assert [(p.key, p.host) for p in merged.processes] == [
        ("rank 0", "node-0"), ("rank 1", "node-0"), ("rank 2", "node-1"), ("rank 3", "node-1"),
    ]  # fmt: skip
    assert merged.origin == "attach"
    assert merged.world_size == 4


def test_engines_that_each_node_counted_for_itself_get_numbers_of_their_own():
    worker = Process(
        "engine 0 worker 1", "engine_worker", engine=0, worker=1, pid=51, identified_by="title"
    )
    second = node(1, engine(0, 50, GUESS), worker)
    second = replace(second, log_events=(LogEvent("engine_control", "pause", engine=0),))

    merged = merged_evidence([node(0, engine(0, 40, GUESS), engine(1, 41, GUESS)), second])

    assert [(p.key, p.engine, p.pid) for p in merged.processes] == [
        ("engine 0", 0, 40), ("engine 1", 1, 41), ("engine 2", 2, 50), ("engine 2 worker 1", 2, 51),
    ]  # fmt: skip
    assert [event.engine for event in merged.log_events] == [2]


def test_two_launchers_stay_two_processes():
    one, other = (node(n, Process("launcher", "launcher", pid=7)) for n in (0, 1))

    merged = merged_evidence([one, other])

    assert [p.key for p in merged.processes] == ["launcher", "launcher (node-1:7)"]


def test_two_looks_at_one_node_are_samples_of_the_same_processes():
    sample = StackSample((), "py-spy", taken_at_s=1.0)
    looks = [
        node(0, replace(rank(0, 100), stacks=(replace(sample, taken_at_s=at),)))
        for at in (1.0, 31.0)
    ]

    merged = merged_evidence(looks)

    (process,) = merged.processes
    assert [one.taken_at_s for one in process.stacks] == [1.0, 31.0]


def test_an_address_and_a_name_may_be_the_same_host():
    by_log = Evidence("files", processes=(replace(rank(0, 100), host="10.0.0.7"),))

    merged = merged_evidence([node(0, rank(0, 100)), by_log])

    assert len(merged.processes) == 1
