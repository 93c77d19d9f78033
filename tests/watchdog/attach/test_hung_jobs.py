"""The whole command on real jobs that hang, without the watchdog in them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.watchdog.attach.conftest import HANGS, start_ticks, tracer, unwatched
from watchdog.cli import group

HERE = Path(__file__).parent
END_WITHIN_S = 60.0


def named(report, key="culprits"):
    return {entry["process"] for entry in report[key]}


@pytest.mark.slow
def test_a_hung_job_is_diagnosed_unharmed_and_goes_on_when_released(tmp_path, attach):
    with unwatched(HERE / "four_ranks.py", tmp_path / "four-ranks") as program:
        before = {pid: start_ticks(pid) for pid in program.pids().values()}
        status, output, errors, seconds = attach(
            "--match", program.folder, "--json", "--output", tmp_path / "out"
        )
        after = {pid: start_ticks(pid) for pid in program.pids().values()}
        tracers = {tracer(pid) for pid in program.pids().values()}
        program.release()
        ended = program.process.wait(END_WITHIN_S)

    report = json.loads(output)
    assert (status, report["state"]) == (0, "hung"), errors
    assert [culprit["rank"] for culprit in report["culprits"]] == [1]
    assert "load_reward_model" in report["culprits"][0]["where"]
    assert {rank for each in report["groups"] for rank in each["ranks"]} == {0, 1, 2, 3}
    assert "HUNG: rank 1 holds up 3 of 4 ranks" in errors.splitlines()[-1]
    assert any("native frames were read of rank 1" in note for note in report["notes"])
    assert (before, tracers, ended) == (after, {"0"}, 0)
    again = CliRunner().invoke(group, ["diagnose", str(tmp_path / "out"), "--json"])
    assert [c["rank"] for c in json.loads(again.output)["culprits"]] == [1]
    print(f"attach took {seconds:.1f} s with an interval of 3 s")  # noqa: T201 - a measurement


@pytest.mark.slow
def test_ranks_that_cannot_speak_are_named_stopped_holding_the_gil_and_killed(tmp_path, attach):
    with unwatched(HANGS / "three_ways_at_once.py", tmp_path / "three-ways") as program:
        _, output, errors, _ = attach("--match", program.folder, "--json")

    report = json.loads(output)
    assert named(report) == {"rank 2", "rank 4", "rank 6"}, errors
    assert {rank for each in report["groups"] for rank in each["ranks"]} == set(range(8))


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only root can give up a capability that the job keeps",
)
def test_what_ptrace_refuses_is_said_and_nothing_is_made_up(tmp_path, attach):
    weaker = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")
    with unwatched(HERE / "four_ranks.py", tmp_path / "refused") as program:
        pids = [f"--pid={pid}" for key, pid in program.pids().items() if key.startswith("rank")]
        status, output, errors, _ = attach(*pids, "--json", prefix=weaker)
        blind_status, _, blind_errors, _ = attach("--match", "no such job", prefix=weaker)

    report = json.loads(output)
    assert status == 3
    assert (report["state"], report["culprits"], report["causes"]) == ("unknown", [], [])
    assert "were refused" in errors
    assert "SYS_PTRACE" in errors
    assert blind_status == 2
    assert "no job and no Python process matches" in blind_errors


def test_nothing_to_attach_to_is_an_error_with_advice(attach):
    status, output, errors, _ = attach("--match", "a job that nobody ever started")

    assert (status, output) == (2, "")
    assert "--pid" in errors
    assert "Traceback" not in errors


def test_two_formats_at_once_are_a_usage_error():
    assert CliRunner().invoke(group, ["attach", "--json", "--markdown"]).exit_code == 2
