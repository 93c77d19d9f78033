"""Which processes belong to which job: every node here is made up."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from watchdog.discovery.processes import Seen, processes_of_this_host
from watchdog.discovery.selection import NoJobError, SeveralJobsError, selected


def roles(job):
    return {member.seen.pid: member.role for member in job.members}


def test_torchruns_children_are_ranks_and_torchrun_the_launcher(node):
    node.add(10, "python /usr/bin/torchrun --nproc-per-node 2 train.py")
    node.ranks([11, 12], parent=10)

    (job,) = node.jobs()

    assert roles(job) == {11: "trainer", 12: "trainer", 10: "launcher"}


def test_what_a_rank_started_is_no_rank_although_it_inherits_the_variables(node):
    node.ranks([11, 12])
    node.ranks([21], parent=11, line="python -c from_multiprocessing_spawn")
    node.everything[21].environ.update(WORLD_SIZE="2")

    (job,) = node.jobs()

    assert [member.seen.pid for member in job.of("trainer")] == [11, 12]


def test_an_engine_that_inherits_a_rank_is_an_engine(node):
    node.ranks([11, 12])
    node.ranks([21], parent=11, line="python -m miles.rollout.engine_server --engine-index 3")
    node.everything[21].environ.update(WORLD_SIZE="2")

    assert node.keys() == {11: "rank 0", 12: "rank 1", 21: "engine 3"}


def test_a_rank_variable_of_the_container_makes_no_trainer_of_a_bystander(node):
    node.add(10, "python -m torch.distributed.run train.py", RANK="0", WORLD_SIZE="2")
    node.ranks([11, 12], parent=10, LOCAL_RANK="0")
    node.add(30, "python tensorboard.py", RANK="0", WORLD_SIZE="2")

    (job,) = node.jobs()

    assert [member.seen.pid for member in job.of("trainer")] == [11, 12]


def test_two_jobs_are_told_apart_by_their_rendezvous(node):
    node.ranks([11, 12], port="29500")
    node.ranks([21, 22], port="29501")

    jobs = node.jobs()

    assert [sorted(job.pids) for job in jobs] == [[11, 12], [21, 22]]


def test_an_ancestor_that_two_jobs_share_belongs_to_neither(node):
    node.add(10, "python run_many.py")
    node.ranks([11, 12], parent=10, port="29500")
    node.ranks([21, 22], parent=10, port="29501")

    assert [sorted(job.pids) for job in node.jobs()] == [[11, 12], [21, 22]]


def test_a_shell_an_editor_a_test_runner_and_the_kernel_are_no_part_of_a_job(node):
    node.add(9, "")
    node.add(2, "bash -c torchrun train.py")
    node.add(3, "vim torchrun_notes.txt")
    node.add(4, "python -m pytest tests")
    node.ranks([11, 12], parent=4)

    (job,) = node.jobs()

    assert job.pids == {11, 12}


def test_a_ray_job_is_its_workers_their_engines_and_the_driver(node):
    ray = {"RAY_JOB_ID": "01000000", "RAY_RAYLET_PID": "5"}
    node.add(5, "/opt/ray/raylet --node")
    node.add(6, "python train.py --actor-num-nodes 1 --actor-num-gpus-per-node 2")
    for pid in (11, 12):
        node.add(pid, "ray::MegatronTrainRayActor.update_weights", 5, **ray)
    node.add(13, "ray::SGLangEngine.update", 5, **ray)
    node.add(14, "python -c spawn_main", 13, **ray)
    node.add(15, "sglang::scheduler_TP0", 14, **ray)
    node.add(16, "ray::IDLE", 5, **ray)
    node.add(17, "ray::Other.step", 5, RAY_JOB_ID="02000000", RAY_RAYLET_PID="5")

    (job,) = node.jobs()

    assert roles(job) == {
        11: "trainer", 12: "trainer", 13: "engine", 14: "engine_worker", 15: "engine_worker",
        6: "driver",
    }  # fmt: skip
    assert job.name == "Ray job 01000000"


def test_an_engine_started_on_its_own_joins_the_job_that_is_connected_to_it(node):
    node.ranks([11, 12])
    node.ranks([21, 22], port="29501")
    node.add(30, "python -m sglang.launch_server --port 30000")
    node.connect(22, 30, port=30000)

    by_pids = {min(job.pids): job for job in node.jobs()}

    assert 30 in by_pids[21].pids
    assert 30 not in by_pids[11].pids


def test_a_zombie_beside_ranks_is_the_rank_that_is_missing(node):
    node.add(10, "python launch.py")
    node.ranks([11, 12, 13], parent=10)
    node.add(12, "", 10, state="Z")

    placed = node.placed()

    zombie = next(member for member in placed.job.members if member.seen.pid == 12)
    assert zombie.key == "rank 1"
    assert "only rank without a process" in " ".join(zombie.by)


def test_processes_of_others_show_by_their_titles_alone(node):
    node.add(13, "ray::SGLangEngine.update", unreadable="yes")
    node.add(11, "ray::MegatronTrainRayActor.update_weights", unreadable="yes")

    jobs = node.jobs()

    assert {pid for job in jobs for pid in job.pids} == {11, 13}


def test_without_a_choice_the_only_training_job_is_meant(node):
    node.ranks([11, 12])
    node.add(30, "python -m sglang.launch_server --port 30000")

    assert selected(node.jobs(), node.everything, (), "").pids == {11, 12}


def test_several_jobs_are_listed_each_with_a_pid_to_choose_it_by(node):
    node.ranks([11, 12], port="29500")
    node.ranks([21, 22], port="29501")

    with pytest.raises(SeveralJobsError) as raised:
        selected(node.jobs(), node.everything, (), "")

    assert "--pid 11" in str(raised.value)
    assert "--pid 21" in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_pid_or_a_part_of_a_name_chooses_among_them(node):
    node.ranks([11, 12], port="29500")
    node.ranks([21, 22], port="29501")

    assert selected(node.jobs(), node.everything, (22,), "").pids == {21, 22}
    assert selected(node.jobs(), node.everything, (), ":29500").pids == {11, 12}


def test_nothing_found_says_whose_environment_was_refused(node):
    node.add(11, "python train.py", unreadable="yes")

    with pytest.raises(NoJobError, match="environment of 1 processes may not be read"):
        selected(node.jobs(), node.everything, (), "")


def test_named_processes_of_an_unknown_kind_are_looked_at_with_what_they_started(node):
    node.add(10, "python spawn.py")
    for pid in (11, 12):
        node.add(pid, "python -c spawn_main", 10)

    job = selected(node.jobs(), node.everything, (10,), "")

    assert [member.seen.pid for member in job.of("trainer")] == [11, 12]


def test_a_pid_that_is_nobodys_is_an_error(node):
    with pytest.raises(NoJobError, match="no process 99"):
        selected(node.jobs(), node.everything, (99,), "")


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("python -u -X dev train.py --x 1", "train.py --x"),
        ("python3.11 -m sglang.launch_server --port", "sglang.launch_server --port"),
        ("/venv/bin/python /venv/bin/vllm serve model", "vllm serve"),
        ("python -c import", ""),
        ("bash train.sh", ""),
        ("ray::Actor.method", ""),
    ],
)
def test_the_program_of_a_command_line(line, program):
    assert Seen(1, 0, 0, words=tuple(line.split())).program == program


def test_real_processes_are_seen_with_command_parent_and_environment():
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={"A_MARK": "of mine"}
    )
    try:
        one = processes_of_this_host()[child.pid]
    finally:
        child.communicate(b"\n", timeout=30)

    assert one.parent == os.getpid()
    assert one.variable("A_MARK") == "of mine"
    assert one.is_python


def test_strangers_below_an_init_are_no_ranks(node):
    node.add(1, "/sbin/init", 0)
    for shell, pid in ((20, 21), (30, 31)):
        node.add(shell, "bash", 1)
        node.add(pid, "python -m pip install torch", shell)

    with pytest.raises(NoJobError, match="no Python process"):
        selected(node.jobs(), node.everything, (1,), "")


def test_ranks_that_a_named_shell_started_are_looked_at(node):
    node.add(10, "bash start.sh")
    for pid in (11, 12):
        node.add(pid, "python worker.py", 10)

    job = selected(node.jobs(), node.everything, (10,), "")

    assert [member.seen.pid for member in job.of("trainer")] == [11, 12]


def test_an_init_stands_for_the_one_job_that_runs_below_it(node):
    node.add(1, "/sbin/init", 0)
    node.ranks((11, 12))
    node.add(20, "python -m pip install torch")
    node.add(21, "python -m pip install numpy")

    assert {11, 12} <= selected(node.jobs(), node.everything, (1,), "").pids
    assert {20, 21}.isdisjoint(selected(node.jobs(), node.everything, (1,), "").pids)
