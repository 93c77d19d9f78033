from tests.rules.building import blocked, rank, sample
from watchdog.evidence import Frame, Process, StackSample, ThreadStack
from watchdog.waits import wait_of

ROOT = "/home/me/project"


def where_of(*calls):
    """Where a rank is, by its calls `function file`, innermost first."""
    frames = tuple(Frame(*call.split(" "), 7) for call in calls)
    thread = ThreadStack("MainThread", frames)
    return wait_of(Process("rank 0", "trainer", stacks=(StackSample((thread,), "py-spy"),))).where


def test_comprehensions_and_lambdas_are_no_callers():
    where = where_of(
        f"_compute_hash_tensor {ROOT}/miles/utils/tensor_backper.py",
        f"<dictcomp> {ROOT}/miles/utils/tensor_backper.py",
        f"_compute_hash_dict {ROOT}/miles/utils/tensor_backper.py",
        f"<lambda> {ROOT}/miles/actor.py",
        f"update_weights {ROOT}/miles/actor.py",
    )

    assert where == (
        "_compute_hash_tensor (miles/utils/tensor_backper.py:7) < _compute_hash_dict"
        " < update_weights"
    )


def test_of_many_callers_the_three_that_say_most_are_told():
    where = where_of(
        f"_read_tensor {ROOT}/miles/a.py",
        *(f"helper_{number} {ROOT}/miles/a.py" for number in range(9)),
        f"update_weights {ROOT}/miles/a.py",
        f"_sync {ROOT}/miles/a.py",
        f"run {ROOT}/miles/a.py",
        f"main {ROOT}/miles/a.py",
    )

    assert where == "_read_tensor (miles/a.py:7) < helper_0 < update_weights < _sync"


def test_a_file_is_told_from_its_package_on():
    deep = "miles/backends/megatron_utils/update_weight/update_weight_from_tensor.py"

    where = where_of(
        "barrier /x/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
        f"update_weights /srv/miles/{deep}",
    )

    assert f"update_weights ({deep}:7)" in where


def test_a_call_inside_of_torch_and_who_made_it_are_both_told():
    where = where_of(
        "barrier /x/site-packages/torch/distributed/distributed_c10d.py",
        f"meet {ROOT}/own/train.py",
    )

    assert where == "barrier < meet (…/me/project/own/train.py:7)"


def test_a_lock_of_the_kernel_is_one_of_files_only_where_the_stack_leads_into_a_file():
    channel = blocked(1000, "rwsem_down_write_slowpath", "D")
    saving = "export (tokenizer.py:12)\nsave_adapter (my_rl/policy.py:40)"
    elsewhere = "step (my_rl/policy.py:90)"

    assert wait_of(rank(0, saving, activity=(channel,))).kind == "file_io"
    assert wait_of(rank(0, elsewhere, activity=(channel,))).kind == "unknown"


def test_a_helper_thread_is_shown_with_the_place_at_which_the_main_thread_waits_for_it():
    main = "wait (threading.py:355)\nget (queue.py:171)\nnext_minibatch (my_rl/feed.py:40)"
    helper = "recv (zmq/sugar/socket.py:799)\npull (my_rl/feed.py:91)\nrun (threading.py:1010)"

    where = wait_of(rank(0, sample(main, helper))).where

    assert "pull" in where
    assert "next_minibatch of the main thread waits for it" in where
