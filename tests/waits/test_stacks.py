"""What one stack says: the innermost call that tells, over all threads."""

from __future__ import annotations

import pytest

from tests.rules import stacks
from tests.rules.building import blocked, position, rank, sample, thread
from watchdog.evidence import MemoryRegion
from watchdog.waits import Wait, stack_wait, wait_of
from watchdog.waits.patterns import own_frames, package_path

LAZY_INIT = """
__poll (libc.so.6)
ncclCommInitRankConfig (libnccl.so.2)
c10d::NCCLComm::create (libtorch_cuda.so)
c10d::ProcessGroupNCCL::initNCCLComm (libtorch_cuda.so)
c10d::ProcessGroupNCCL::allgather (libtorch_cuda.so)
all_gather (torch/distributed/distributed_c10d.py:3871)
gather_from_tp_ranks (megatron/bridge/models/conversion/param_mapping.py:541)
"""


@pytest.mark.parametrize(
    ("text", "kind", "operation"),
    [
        (stacks.GLOO_BARRIER, "collective", "barrier"),
        (stacks.SAVE_GATHER, "collective", "gather_object"),
        (stacks.FULL_TENSOR, "collective", "all_gather"),
        (stacks.RECV_FORWARD, "collective", "recv_forward"),
        (stacks.RAY_GET, "rpc", "ray.get"),
        (stacks.HTTP_POST, "rpc", "http"),
        (stacks.HASH_READ, "weight_read", "_compute_hash_tensor"),
        (stacks.SAVE_COPY, "weight_read", "preload_tensors"),
        (stacks.NEW_GROUP, "rendezvous", "new_group"),
        (stacks.FILE_POLL, "file_wait", "sync_wait_for_path"),
        (stacks.TRITON_CUBIN, "slow_work", "compile"),
        (stacks.CHECKPOINT_READ, "file_io", "read"),
        (stacks.BACKWARD, "compute", "backward"),
        (stacks.VLLM_IDLE, "idle", "message loop"),
        (stacks.VLLM_STEP, "engine_step", "_to_list"),
        (stacks.SCHEDULER_IDLE, "idle", "request queue"),
        (stacks.SCHEDULER_RECEIVE, "collective", "broadcast"),
    ],
)
def test_a_stack_tells_kind_and_operation(text: str, kind: str, operation: str) -> None:
    found = stack_wait(thread(text))

    assert (found.kind, found.operation) == (kind, operation)


def test_setting_up_a_communicator_inside_a_collective_is_the_collective() -> None:
    found = stack_wait(thread(LAZY_INIT))

    assert (found.kind, found.operation) == ("collective", "all_gather")
    assert found.note == "setting up its communicator"


def test_an_actor_that_called_something_is_not_idle() -> None:
    idle = "main_loop (ray/_private/worker.py:964)"
    busy = f"encode (my_rl/encode.py:3)\n{idle}"

    assert stack_wait(thread(idle)).kind == "idle"
    assert stack_wait(thread(busy)).kind == "unknown"


def test_another_thread_speaks_for_a_main_thread_that_only_loops() -> None:
    loop = "select (selectors.py:468)\nrun_until_complete (asyncio/base_events.py:674)"

    found = wait_of(rank(0, sample(loop, stacks.GLOO_BARRIER)))

    assert found.kind == "collective"
    assert found.thread == "Thread-1"


def test_helper_threads_of_libraries_do_not_speak_for_the_process() -> None:
    pipe = "_recv (multiprocessing/connection.py:379)\nrecv (multiprocessing/connection.py:250)"

    found = wait_of(rank(0, sample("wait (threading.py:355)\nmain (train.py:3)", pipe)))

    assert found.kind == "queue"


def test_the_kernel_knows_a_read_of_paused_memory() -> None:
    found = wait_of(rank(1, stacks.HASH_READ, activity=(blocked(1001, "handle_userfault"),)))

    assert found.kind == "paused_memory"
    assert "wchan handle_userfault" in found.where


def test_a_plain_pause_is_no_page_fault() -> None:
    waiting = "pause_here (my_rl/wait.py:3)\nmain (train.py:9)"
    here = position("read_weights")
    region = MemoryRegion("param_buffer", "paused_without_copy")
    activity = (blocked(1001, "__do_sys_pause"),)

    plain = wait_of(rank(1, waiting, activity=activity, position=here))
    fault = wait_of(rank(1, waiting, activity=activity, position=here, memory=(region,)))

    assert (plain.kind, fault.kind) == ("unknown", "paused_memory")


def test_the_black_box_names_the_collective_that_a_stack_hides() -> None:
    hidden = "run (train.py:30)\nmain (train.py:90)"

    found = wait_of(rank(1, hidden, position=position("sync", "barrier", "gloo", 7, (0, 1))))

    assert (found.kind, found.operation, found.sequence) == ("collective", "barrier", 7)


def test_a_dead_process_is_dead_whatever_its_stack_said() -> None:
    found = wait_of(rank(1, stacks.GLOO_BARRIER, status="dead", status_detail="killed by signal 9"))

    assert found.kind == "dead"
    assert found.where.startswith("killed by signal 9, last seen in barrier")


def test_a_silent_process_does_not_answer() -> None:
    assert wait_of(rank(1)) == Wait("no_answer", "no answer", where="no answer")


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("/usr/local/lib/python3.12/dist-packages/torch/x.py", "torch/x.py"),
        ("/opt/venv/lib/python3.11/site-packages/ray/_private/worker.py", "ray/_private/worker.py"),
        ("/usr/lib/python3.11/threading.py", "threading.py"),
        ("/root/miles/train.py", "/root/miles/train.py"),
    ],
)
def test_where_a_package_is_installed_does_not_matter(path: str, short: str) -> None:
    assert package_path(path) == short


def test_a_framework_may_have_a_folder_named_like_a_library() -> None:
    frames = thread("broadcast_to_vllm (openrlhf/trainer/ray/ppo_actor.py:241)").frames

    assert own_frames(frames) == frames


_READ = "read_weights (my/sync.py:22)\nmain (my/sync.py:40)"


@pytest.mark.parametrize(
    ("innermost", "kind"),
    [
        ("PyThread_acquire_lock_timed (libpython3.11.so.1.0)", "lock"),
        ("acquire (threading.py:200)", "lock"),
        ("clock_nanosleep (libc.so.6)", "sleep"),
        ("readinto (socket.py:706)\n_read_status (http/client.py:280)", "rpc"),
        ("at::native::copy_ (libtorch_cpu.so)", "weight_read"),
        ("cudaMemcpyAsync (libcudart.so.12)", "weight_read"),
    ],
)
def test_the_innermost_frames_outrank_a_name_that_claims_a_weight_read(
    innermost: str, kind: str
) -> None:
    assert stack_wait(thread(f"{innermost}\n{_READ}")).kind == kind


@pytest.mark.parametrize(
    ("channel", "kind"),
    [
        ("hrtimer_nanosleep", "sleep"),
        ("wait_woken", "rpc"),
        ("handle_userfault", "paused_memory"),
        ("futex_do_wait", "weight_read"),
    ],
)
def test_the_kernel_outranks_a_name_that_claims_a_weight_read(channel: str, kind: str) -> None:
    found = wait_of(rank(1, _READ, activity=(blocked(1001, channel),)))

    assert found.kind == kind


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("/data/job/code/hang.py", "/data/job/code/hang.py"),
        ("hang.py", "hang.py"),
        ("/home/me/job/code/src/hang.py", "…/job/code/src/hang.py"),
        ("/venv/lib/python3.11/site-packages/mine/hang.py", "mine/hang.py"),
    ],
)
def test_a_path_is_told_whole_or_marked_as_shortened_and_never_loses_its_slash_alone(file, shown):
    wait = wait_of(rank(0, f"read_all ({file}:10)"))

    assert wait.where == f"read_all ({shown}:10)"


ACQUIRE = "PyThread_acquire_lock_timed (python3.11)\n"


@pytest.mark.parametrize(
    ("calls", "kind"),
    [
        ("wait (threading.py:324)\nget (queue.py:171)\ntake (/job/train.py:9)", "queue"),
        ("wait (threading.py:324)\nwait (threading.py:622)\ntake (/job/train.py:9)", "queue"),
        ("result (concurrent/futures/_base.py:451)\ntake (/job/train.py:9)", "queue"),
        ("load_shard (/job/train.py:9)", "lock"),
        ("read_weights (/job/train.py:9)", "lock"),
        ("take (/job/train.py:9)", "lock"),
    ],
)
def test_a_native_lock_is_what_python_calls_it_and_outranks_the_name_of_a_function(
    calls: str, kind: str
) -> None:
    assert stack_wait(thread(ACQUIRE + calls)).kind == kind


def test_an_event_in_a_function_that_claims_to_read_is_no_read() -> None:
    assert (
        stack_wait(thread("wait (threading.py:622)\nload_shard (/job/train.py:9)")).kind == "queue"
    )


def test_where_no_function_is_in_the_way_the_program_itself_is_the_place() -> None:
    waiting = rank(0, "clock_nanosleep (libc.so.6)\n<module> (/job/train.py:9)")

    assert wait_of(waiting).where == "clock_nanosleep < <module> (/job/train.py:9)"
