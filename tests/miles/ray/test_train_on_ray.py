"""Whole runs with ranks and engines as Ray actors."""

import re
import signal

import psutil
import pytest

pytest.importorskip("ray", exc_type=ImportError)

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.xdist_group("ray cluster")]

ON_TWO_NODES = ("--actor-num-nodes", "2", "--actor-num-gpus-per-node", "1")
ONE_RANK = ("--actor-num-gpus-per-node", "1", "--colocate")
FOREVER = ("--num-rollout", "100000")
RANK = "ray::MegatronTrainRayActor"
SERVER = "miles.rollout.engine_server"


def test_ranks_on_two_nodes_learn_and_leave_their_weights_in_the_engines(two_nodes, start_ray_run):
    run = start_ray_run(
        *("--ray-address", two_nodes.address, *ON_TWO_NODES),
        *("--colocate", "--lora-rank", "4", "--num-rollout", "6"),
    )

    status = run.finish()

    assert status == 0, run.errors
    assert "done: 2 engine(s) hold the trained weights" in run.output
    steps = run.metrics()
    assert [step["weight_version"] for step in steps] == [1, 2, 3, 4, 5, 6]
    assert steps[-1]["reward"] > steps[0]["reward"] + 0.15
    assert two_nodes.ends_of(RANK) == []
    assert two_nodes.ends_of(SERVER) == []


def test_each_node_has_a_rank_and_a_dead_engine_ends_the_run_by_name(two_nodes, start_ray_run):
    run = start_ray_run(
        *("--ray-address", two_nodes.address, *ON_TWO_NODES, *FOREVER),
        *("--rollout-num-gpus", "2"),  # engines apart from the ranks: broadcast between nodes
    )
    run.wait_for("rollout 1 ")
    ranks = two_nodes.processes(RANK)
    raylets = {rank.ppid() for rank in ranks}
    addresses = {rank.environ()["MILES_HOST_IP"] for rank in ranks}
    (engine,) = (p for p in two_nodes.processes(SERVER) if index_of(p) == "1")

    engine.kill()
    status = run.finish()

    assert len(ranks) == len(raylets) == 2
    assert addresses == {"127.0.0.2", "127.0.0.3"}
    assert status == 1
    assert "EngineError: engine 1 at http://127.0.0." in run.errors
    assert "engine 1 ended with status -9" in run.errors
    for title in (RANK, "ray::SGLangEngine", "ray::RolloutManager", SERVER):
        assert two_nodes.ends_of(title) == []


def test_a_killed_rank_ends_the_run_by_name_and_its_cluster_with_it(start_ray_run):
    run = start_ray_run(
        *("--actor-num-gpus-per-node", "2", "--rollout-num-gpus-per-engine", "2", "--colocate"),
        *FOREVER,
    )
    run.wait_for("rollout 1 ")
    rank = next(p for p in run.processes() if p.cmdline()[0].startswith(RANK))

    rank.kill()

    assert run.finish() == 1
    assert re.search(rf"rank [01] \(pid {rank.pid} on 127\.0\.0\.2\) is gone: ", run.errors)
    assert "its worker process has died" in run.errors
    assert run.processes() == []


def test_a_run_whose_driver_is_killed_leaves_no_process(start_ray_run):
    run = start_ray_run(*ONE_RANK, *FOREVER)
    run.wait_for("rollout 1 ")
    members = run.processes()

    run.process.kill()

    # Agents of Ray itself try for a minute to tell a server that is gone of the end.
    _, alive = psutil.wait_procs(members, timeout=150)
    assert alive == []


def test_a_run_that_is_told_to_end_leaves_no_process_not_even_a_stopped_rank(start_ray_run):
    run = start_ray_run(*ONE_RANK, *FOREVER)
    run.wait_for("rollout 1 ")
    (rank,) = (p for p in run.processes() if p.cmdline()[0].startswith(RANK))

    rank.suspend()
    run.process.terminate()

    assert run.finish() == 128 + signal.SIGTERM
    assert run.processes() == []
    assert "Traceback" not in run.errors


def test_a_cluster_without_room_is_named_with_what_it_has(two_nodes, start_ray_run):
    run = start_ray_run("--ray-address", two_nodes.address, "--actor-num-gpus-per-node", "3")

    assert run.finish() == 1
    assert "no room for this run" in run.errors
    assert "wanted 3 + 1 CPUs, each sum on one node; 4 CPUs are free on 2 node(s)" in run.errors


def index_of(engine):
    """The number of an engine's server process."""
    command = engine.cmdline()
    return command[command.index("--engine-index") + 1]
