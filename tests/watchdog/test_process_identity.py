import os
import sys
from types import SimpleNamespace

import pytest

from watchdog.process_identity import is_child_of_a_rank, process_identity, run_name


def test_rank_and_world_come_from_the_launcher():
    identity = process_identity({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"})

    assert (identity.rank, identity.world_size, identity.local_rank) == (3, 8, 1)
    assert identity.role == "trainer"
    assert identity.pid == os.getpid()


def test_what_the_caller_knows_goes_first():
    assert process_identity({"RANK": "3"}, rank=5, world_size=6).rank == 5


def test_a_process_without_rank_is_no_trainer():
    assert process_identity({}).role == "other"


def test_a_child_that_inherited_a_rank_is_not_that_rank():
    environ = {"RANK": "3", "MILES_WATCHDOG_OWNER": f"3:{os.getppid()}"}

    assert is_child_of_a_rank(environ)
    assert process_identity(environ).role == "other"


def test_a_rank_restarted_by_the_same_agent_is_a_rank():
    assert not is_child_of_a_rank({"MILES_WATCHDOG_OWNER": f"3:{2**22 + 1}"})
    assert not is_child_of_a_rank({"MILES_WATCHDOG_OWNER": f"3:{os.getpid()}"})


TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "none",
    "RANK": "1",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29500",
}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"MILES_WATCHDOG_RUN": "nightly/7", "RANK": "1"}, "nightly-7"),
        ({"SLURM_JOB_ID": "17", "SLURM_STEP_ID": "2", "SLURM_PROCID": "1"}, "slurm-17-2"),
        (TORCHRUN | {"GROUP_WORLD_SIZE": "2"}, "none-10.0.0.1-29500"),
        (
            TORCHRUN | {"GROUP_WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "1"},
            "none-10.0.0.1-29500-restart1",
        ),
    ],
)
def test_the_name_of_the_run(environ, expected):
    assert run_name(environ) == expected


def test_ranks_of_one_agent_agree_and_differ_from_the_next_job():
    ranks = [TORCHRUN | {"RANK": rank, "GROUP_WORLD_SIZE": "1"} for rank in "012"]

    (name,) = {run_name(environ) for environ in ranks}

    assert f"-{os.getppid()}-29500" in name
    assert name != run_name(ranks[0] | {"MASTER_PORT": "29501"})


def test_a_name_cannot_leave_the_folder():
    assert run_name({"MILES_WATCHDOG_RUN": "../../etc/passwd"}) == "etc-passwd"
    assert run_name({"MILES_WATCHDOG_RUN": "/"}) == "run"


def test_a_restart_of_a_run_that_its_launcher_named_is_another_run():
    environ = {"MILES_WATCHDOG_RUN": "job", "TORCHELASTIC_RESTART_COUNT": "1"}

    first = run_name(environ)

    assert first == "job-restart1"
    assert run_name(environ | {"MILES_WATCHDOG_RUN": first}) == first


@pytest.fixture
def ray_job(monkeypatch):
    """Let Ray say which job this process works for."""

    def connect(job):
        current = SimpleNamespace(is_nil=lambda: not job, hex=lambda: job)
        worker = SimpleNamespace(
            global_worker=SimpleNamespace(current_job_id=current),
            _global_node=SimpleNamespace(session_name="session_one"),
        )
        monkeypatch.setitem(sys.modules, "ray._private.worker", worker)

    return connect


def test_ray_itself_is_asked_for_the_job_of_a_worker_started_in_reserve(ray_job):
    ray_job("01000000")

    assert run_name({"RAY_JOB_ID": "ffffffff"}) == "ray-one-01000000"
    assert run_name({}) == "ray-one-01000000"


def test_before_ray_is_connected_the_environment_names_the_job(ray_job):
    ray_job("")

    assert run_name({"RAY_JOB_ID": "02000000"}) == "ray-one-02000000"
