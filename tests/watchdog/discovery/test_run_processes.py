"""What belongs to a run beside its ranks, and what was there and has ended."""

from __future__ import annotations

from watchdog.discovery.run_processes import members_of_run, with_ended
from watchdog.sentinel.run_roster import Noted

RUN = {"MILES_WATCHDOG_RUN": "r"}
NOW_S = 1000.0
ENGINE = "python -m sglang.launch_server --port 7001"


def noted(ticks):
    """An engine that was started by process 10 and has ended."""
    return Noted(20, 10, ticks, tuple(ENGINE.split()), NOW_S - 60, NOW_S - 5)


def keys(node, everything=None):
    everything = node.everything if everything is None else everything
    found = members_of_run(everything, "r", {11, 12}, "node-0", node.connections)
    return {member.seen.pid: member.key for member in found}


def job(node):
    node.add(10, "python launch.py", **RUN)
    node.ranks([11, 12], parent=10, **RUN)


def test_an_engine_its_forks_the_launcher_and_a_loader_belong_to_the_run(node):
    job(node)
    node.add(20, ENGINE, 10, **RUN)
    node.add(21, ENGINE, 20, **RUN)
    node.add(22, ENGINE, 20, **RUN)
    node.add(30, "python train.py", 11, **RUN)

    assert keys(node) == {
        20: "engine 0", 21: "engine 0 worker 0", 22: "engine 0 worker 1",
        10: "launcher", 30: "node-0:30",
    }  # fmt: skip


def test_a_wrapper_above_the_ranks_waits_for_nothing_that_matters(node):
    node.add(8, "bash run.sh", **RUN)
    node.add(9, "/usr/bin/timeout -k 2 60 python launch.py", 8, **RUN)
    node.add(10, "python launch.py", 9, **RUN)
    node.ranks([11, 12], parent=10, **RUN)
    node.add(19, "env A=1 sh -c engine", 10, **RUN)
    node.add(20, ENGINE, 19, **RUN)
    node.add(30, "bash -c loader", 11, **RUN)
    node.add(31, "loader", 30, **RUN)

    assert keys(node) == {10: "launcher", 20: "engine 0", 31: "node-0:31"}


def test_another_run_and_the_watchdogs_own_processes_do_not(node):
    job(node)
    node.add(40, ENGINE, MILES_WATCHDOG_RUN="another")
    node.add(41, "python -I -S -c code miles-watchdog-sentinel /a /b []", **RUN)
    node.add(42, "python -m watchdog.node.speaker /a /b", 41, **RUN)
    node.add(43, "python /bin/py-spy dump", 42, **RUN)
    node.add(44, "", 11, state="Z", name="weight-sync-wd")

    assert keys(node) == {10: "launcher"}


def test_a_zombie_is_named_by_what_was_noted_while_it_ran(node):
    job(node)
    node.add(20, "", 10, state="Z")

    everything = with_ended(node.everything, [noted(20)], NOW_S)

    assert keys(node, everything)[20] == "engine 0"


def test_one_that_was_reaped_is_named_as_well(node):
    job(node)

    everything = with_ended(node.everything, [noted(20)], NOW_S)

    assert keys(node, everything) == {20: "engine 0", 10: "launcher"}


def test_a_number_that_was_given_anew_is_the_new_process(node):
    job(node)
    node.add(20, "python other.py", 10)

    everything = with_ended(node.everything, [noted(7)], NOW_S)

    assert keys(node, everything)[20] == "node-0:20"
