"""Every program that hangs gets the right verdict, and its healthy twin raises no alarm."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from typing import Any

import pytest
from _cgroup import can_limit_memory
from _harness import END_WITHIN_S, running
from _job import Expected
from _nodes import can_make_nodes
from healthy_twins import programs

_CAN = {"cgroup": can_limit_memory, "netns": can_make_nodes}
TWO_HOSTS = ["node_cut_off", "rank_of_other_node_never_arrives"]
# The second one has no rank left that could speak.
SILENT_HOST = ["node_holds_gil", "node_stopped"]
# Its eight ranks are started once, where the time to the report is measured as well.
EIGHT_RANKS = "three_ways_at_once"
ONE_HOST = [n for n in programs() if n not in (*TWO_HOSTS, *SILENT_HOST, EIGHT_RANKS)]


def missing_of(name: str) -> list[str]:
    """What this machine lacks for a program."""
    return [need for need in importlib.import_module(name).EXPECTED.needs if not _CAN[need]()]


def expected_of(name: str) -> Expected:
    if missing := missing_of(name):
        pytest.skip(f"needs {', '.join(missing)}")
    return importlib.import_module(name).EXPECTED


def ranks_named(report: dict[str, Any]) -> set[int]:
    named = {rank for group in report["groups"] for rank in group.get("ranks", ())}
    return named | set(report.get("unaccounted", ()))


def check(report: dict[str, Any], expected: Expected) -> None:
    states = (expected.state,) if isinstance(expected.state, str) else expected.state
    assert report["state"] in states, report["reason"]
    named = {culprit["process"] for culprit in report["culprits"]}
    for culprit in expected.culprits:
        wanted = {culprit} if isinstance(culprit, str) else set(culprit)
        assert named & wanted, f"{wanted} not among the culprits {named}"
    places = " ".join(f"{one['where']} {one['why']}" for one in report["culprits"])
    assert any(word in places for word in expected.where), places
    assert ranks_named(report) == set(range(expected.ranks)), "a rank is missing from the verdict"
    if expected.cause is not None:
        assert [cause["class"] for cause in report["causes"][:1]] == [expected.cause]


def culprits_are_no_victims(report: dict[str, Any], expected: Expected) -> None:
    """No rank that only waits is blamed along with the culprit."""
    allowed = {
        key
        for culprit in expected.culprits
        for key in ([culprit] if isinstance(culprit, str) else culprit)
    }
    named = {one["process"] for one in report["culprits"] if one["rank"] is not None}
    assert named <= allowed


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_HOST)
def test_the_verdict_names_who_holds_the_job_up(name, tmp_path):
    expected = expected_of(name)

    with running(name, tmp_path, STALL_AFTER=3) as program:
        program.wait_until_ready()
        report = program.report()

    check(report, expected)
    culprits_are_no_victims(report, expected)


@pytest.mark.slow
def test_the_healthy_twins_raise_no_alarm(tmp_path):
    with running("healthy_twins", tmp_path, healthy=True, STALL_AFTER=15) as program:
        status = program.process.wait(5 * END_WITHIN_S)
        log = program.log.read_text()

    assert status == 0, log[-3000:]
    assert program.reports() == []
    assert not list(program.watchdog_dir.glob("**/incidents"))


@pytest.mark.slow
def test_a_released_job_ends_well_after_its_report(tmp_path):
    with running("rank_never_arrives", tmp_path, STALL_AFTER=3) as program:
        program.wait_until_ready()
        program.report()
        program.release()
        status = program.process.wait(END_WITHIN_S)

    assert status == 0, program.log.read_text()[-3000:]


@pytest.mark.slow
@pytest.mark.netns
@pytest.mark.parametrize("shared", [False, True], ids=["own folders", "shared folder"])
@pytest.mark.parametrize("name", TWO_HOSTS)
def test_two_hosts_name_who_holds_the_job_up(name, shared, tmp_path, monkeypatch):
    expected = expected_of(name)
    monkeypatch.setenv("HANGS_SHARED_DIR", str(int(shared)))

    with running(name, tmp_path, STALL_AFTER=3) as program:
        program.wait_until_ready()
        report = program.report(None if shared else 0)

    if shared and name == "node_cut_off":
        # The folder shows each host that the other waits as it does: nobody is to blame.
        expected = replace(expected, culprits=(), where=("",), cause=None)
    check(report, expected)


@pytest.mark.slow
@pytest.mark.netns
@pytest.mark.parametrize("name", SILENT_HOST)
def test_of_a_host_whose_ranks_are_all_silent_its_sentinel_tells(name, tmp_path):
    expected = expected_of(name)

    # Time for the sentinel to be sure that they are silent, and to say so.
    with running(name, tmp_path, STALL_AFTER=25) as program:
        program.wait_until_ready()
        report = program.report(0)
        log = program.log.read_text()

    check(report, expected)
    culprits_are_no_victims(report, expected)
    assert "Exception raised from" not in log


@pytest.mark.slow
@pytest.mark.netns
def test_each_side_of_a_cut_link_says_which_ranks_it_hears_no_more(tmp_path):
    expected_of("node_cut_off")

    with running("node_cut_off", tmp_path, STALL_AFTER=3) as program:
        program.wait_until_ready()
        reasons = [program.report(node)["reason"] for node in (0, 1)]

    assert re.fullmatch(
        r"Host node-1 with ranks 2-3 is silent: its last sign of life came \d+ s before this, "
        r"at \d\d:\d\d:\d\d UTC\.",
        reasons[0],
    )
    # What node 0 said before lies in the store, which is beyond the link.
    assert reasons[1] == "The host of ranks 0-1 is silent: it could not be reached."


@pytest.mark.slow
@pytest.mark.netns
def test_both_hosts_end_with_the_same_verdict(tmp_path):
    expected = expected_of("rank_of_other_node_never_arrives")

    with running("rank_of_other_node_never_arrives", tmp_path, STALL_AFTER=3) as program:
        program.wait_until_ready()
        reports = [program.report(node) for node in (0, 1)]

    for report in reports:
        check(report, expected)
    # Native frames can be read on one's own host alone: only the place may differ by them.
    first, second = (
        [(one["process"], one["rank"], one["pid"], one["host"]) for one in report["culprits"]]
        for report in reports
    )
    assert first == second


@pytest.mark.slow
@pytest.mark.netns
def test_an_order_to_end_reaches_the_ranks_of_the_other_host(tmp_path):
    expected_of("rank_of_other_node_never_arrives")

    # The rank that never arrives would stay for ever: its host has to hear of it.
    with running(
        "rank_of_other_node_never_arrives", tmp_path, STALL_AFTER=3, ABORT_AFTER=4
    ) as program:
        program.wait_until_ready()

        assert program.process.wait(END_WITHIN_S) != 0
