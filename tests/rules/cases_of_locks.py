"""Cases of locks, the GIL and event loops that nobody lets go of."""

from __future__ import annotations

from tests.rules import stacks
from tests.rules.building import blocked, engine, files, live, log, position, rank, sample
from tests.rules.shared_parts import ACTOR_LOOP, ALL_REDUCE, LATER, SYNC, error_of, waiting
from watchdog.evidence import ActivitySample, Evidence, LogEvent, Process, ThreadActivity


def jit_lock_left_behind__fires_baton() -> Evidence:
    baton = (
        "wait (torch/utils/file_baton.py:49)\nload"
        " (torch/utils/cpp_extension.py:1300)\nbuild_ops (sglang/srt/ops.py:9)"
    )
    return files(engine(0, baton, baton, worker=0), rank(0, stacks.RAY_GET, stacks.RAY_GET))


def jit_lock_left_behind__silent_holder_compiles() -> Evidence:
    baton = (
        "wait (torch/utils/file_baton.py:49)\nload"
        " (torch/utils/cpp_extension.py:1300)\nbuild_ops (sglang/srt/ops.py:9)"
    )
    return files(
        engine(0, baton, baton, worker=0),
        engine(0, stacks.TRITON_LLIR, stacks.TRITON_CUBIN, worker=1),
        rank(0, stacks.RAY_GET, stacks.RAY_GET),
    )


def _lock_case(stack: str, *more: str) -> Evidence:
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1, 2))
    others = [rank(r, stacks.GLOO_BARRIER, position=where) for r in (0, 2)]
    stuck = rank(
        1,
        sample(stack, *more),
        sample(stack, *more),
        position=position("send_chunk"),
        activity=(blocked(1001, "futex_wait_queue"),),
    )
    return live(others[0], stuck, others[1])


_ACQUIRE = """
__futex_abstimed_wait_common (libc.so.6)
PyThread_acquire_lock_timed (python3.12)
lock_PyThread_acquire_lock (python3.12)
acquire_engine_lock (my/locks.py:9)
send_bucket (my/sync.py:40)
"""


def lock_never_released__fires_acquire() -> Evidence:
    return _lock_case(_ACQUIRE)


def lock_never_released__fires_two_threads() -> Evidence:
    return _lock_case(
        _ACQUIRE,
        _ACQUIRE.replace(
            "acquire_engine_lock (my/locks.py:9)", "offload_then_send (my/locks.py:30)"
        ),
    )


def lock_never_released__silent_collective_under_a_lock() -> Evidence:
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1, 2))
    inside = stacks.GLOO_BARRIER + "send_bucket_locked (my/sync.py:40)\n__enter__ (my/locks.py:3)\n"
    return live(*(rank(r, inside, position=where) for r in (0, 1, 2)))


def negative_lookup_cache__fires_file_exists() -> Evidence:
    path = "/nfs/run/step_4/STABLE"
    events = (
        log(
            f"Waiting for path `{path}` for 50 seconds",
            "trainer.log",
            4,
            "file_wait",
            rank=0,
            time_s=70.0,
            fields={"path": path},
        ),
        log(
            f"Found path `{path}`",
            "orchestrator.log",
            2,
            "file_found",
            time_s=20.0,
            fields={"path": path},
        ),
        log("nas:/x on /nfs type nfs4 (rw)", "mount.txt", 1, "nfs_mount", fields={"type": "nfs4"}),
    )
    return files(*(rank(r, stacks.FILE_POLL, stacks.FILE_POLL) for r in (0, 1)), log_events=events)


def negative_lookup_cache__silent_nobody_wrote_it() -> Evidence:
    path = "/nfs/run/step_4/STABLE"
    events = (
        log(
            f"Waiting for path `{path}` for 50 seconds",
            "trainer.log",
            4,
            "file_wait",
            rank=0,
            time_s=70.0,
            fields={"path": path},
        ),
        log("nas:/x on /nfs type nfs4 (rw)", "mount.txt", 1, "nfs_mount", fields={"type": "nfs4"}),
    )
    return files(*(rank(r, stacks.FILE_POLL, stacks.FILE_POLL) for r in (0, 1)), log_events=events)


_DESTRUCTOR = """
cuStreamSynchronize (libcuda.so.570.133.20)
cudaStreamSynchronize (libcudart.so.12)
THPStorage_newSharedCuda(_object*, _object*)::{lambda(void*)#1}::_FUN (libtorch_python.so)
c10::StorageImpl::release_resources (libc10.so)
THPVariable_dealloc (libtorch_python.so)
update_weights_from_tensor (sglang/srt/speculative/eagle_worker_v2.py:871)
process_input_requests (sglang/srt/managers/scheduler.py:1288)
event_loop_overlap (sglang/srt/managers/scheduler.py:1146)
"""


def cuda_ipc_handle_opened_twice__fires_native_destructor() -> Evidence:
    peers = [engine(0, stacks.SCHEDULER_UPDATE_BARRIER, worker=w) for w in (0, 1, 3)]
    odd = engine(0, sample(_DESTRUCTOR, owns_gil=True, active=True), worker=2)
    return files(*peers, odd)


def cuda_ipc_handle_opened_twice__silent_plain_synchronise() -> Evidence:
    driver = _DESTRUCTOR.replace(
        "THPStorage_newSharedCuda(_object*, _object*)::{lambda(void*)#1}::_FUN", "at::copy"
    )
    driver = driver.replace("speculative/eagle_worker_v2", "managers/tp_worker")
    peers = [engine(0, stacks.SCHEDULER_UPDATE_BARRIER, worker=w) for w in (0, 1, 3)]
    return files(*peers, engine(0, driver, worker=2))


_GIL_MAIN = """
pthread_cond_timedwait (libc.so.6)
take_gil (python3.12)
PyEval_RestoreThread (python3.12)
load_weights (vllm/model_executor/models/qwen2.py:401)
worker_busy_loop (vllm/v1/executor/multiproc_executor.py:822)
"""


_GIL_OTHER = """
take_gil (python3.12)
PyGILState_Ensure (python3.12)
start_thread (libc.so.6)
"""


_GIL_HOLDER = """
__lll_lock_wait (libc.so.6)
pthread_mutex_lock (libc.so.6)
cudaSetDevice (libcudart.so.12)
__enter__ (torch/cuda/__init__.py:523)
_store_layer (lmcache/v1/cache_engine.py:287)
"""


def gil_held__fires_lock_of_the_driver() -> Evidence:
    base = sample(_GIL_MAIN, _GIL_OTHER, _GIL_HOLDER)
    threads = (
        *base.threads[:2],
        base.threads[2].__class__("store-0", base.threads[2].frames, owns_gil=True, active=True),
    )
    worker = engine(0, base.__class__(threads, "py-spy --native"), worker=0)
    return files(rank(0, stacks.HTTP_POST), worker)


def gil_held__fires_silent_heartbeat() -> Evidence:
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1, 2))
    holder = rank(
        1,
        sample("pack_bucket (my/pack.py:9)\nsync (my/sync.py:3)", owns_gil=True),
        position=position("send_chunk", heartbeat=8.0),
    )
    return live(
        rank(0, stacks.GLOO_BARRIER, position=where),
        holder,
        rank(2, stacks.GLOO_BARRIER, position=where),
    )


def gil_held__silent_python_at_work() -> Evidence:
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1, 2))
    first = sample("pack_row (my/pack.py:9)\npack (my/pack.py:30)", owns_gil=True, active=True)
    then = sample("sum_row (my/pack.py:15)\npack (my/pack.py:30)", owns_gil=True, active=True)
    return live(
        rank(0, stacks.GLOO_BARRIER, position=where),
        rank(1, first, then, position=position("send_chunk")),
    )


def _group_join(index: int, name: str) -> LogEvent:
    text = f"init custom process group: world_size=9, group_name={name}"
    return log(
        text,
        f"engine{index}.log",
        1,
        "group_join",
        engine=index,
        fields={"world_size": "9", "group": name},
    )


_CONNECT = """
get_objects (ray/_private/worker.py:958)
get (ray/_private/worker.py:2858)
connect_rollout_engines_from_distributed (slime/backends/megatron_utils/distributed.py:205)
connect_rollout_engines (slime/backends/megatron_utils/update_weight/distributed.py:70)
update_weights (slime/backends/megatron_utils/actor.py:574)
"""


_ENGINE_JOIN = """
init_custom_process_group (sglang/srt/utils/common.py:1100)
init_weights_update_group (sglang/srt/model_executor/model_runner.py:1050)
event_loop_overlap (sglang/srt/managers/scheduler.py:1146)
"""


def group_creation_cycle__fires_two_groups() -> Evidence:
    trainers = [
        rank(0, _CONNECT, _CONNECT),
        rank(1, stacks.GLOO_BARRIER),
        rank(2, _CONNECT, _CONNECT),
        rank(3, stacks.GLOO_BARRIER),
    ]
    engines = [engine(i, _ENGINE_JOIN, worker=0) for i in (0, 1)]
    joins = (_group_join(0, "slime-pp_0"), _group_join(1, "slime-pp_1"))
    return files(*trainers, *engines, log_events=(SYNC, *joins, LATER))


def group_creation_cycle__silent_one_source() -> Evidence:
    trainers = [rank(0, _CONNECT, _CONNECT), *(rank(r, stacks.GLOO_BARRIER) for r in (1, 2, 3))]
    return files(
        *trainers,
        engine(0, _ENGINE_JOIN, worker=0),
        log_events=(SYNC, _group_join(0, "slime-pp_0"), LATER),
    )


_LOOP_BLOCKED = """
get_objects (ray/_private/worker.py:958)
get (ray/_private/worker.py:2858)
generate (rllm/server.py:77)
_run (asyncio/events.py:88)
_run_once (asyncio/base_events.py:1987)
run_forever (asyncio/base_events.py:641)
"""


def blocking_call_in_event_loop__fires_ray_get_in_loop() -> Evidence:
    warned = log(
        "Using blocking ray.get inside async actor. This blocks the event loop.",
        "engine0.log",
        2,
        engine=0,
    )
    return files(
        rank(0, stacks.RAY_GET, stacks.RAY_GET),
        engine(0, _LOOP_BLOCKED, _LOOP_BLOCKED),
        log_events=(SYNC, warned, LATER),
    )


def blocking_call_in_event_loop__silent_in_a_thread() -> Evidence:
    in_thread = _LOOP_BLOCKED.replace(
        "_run (asyncio/events.py:88)\n_run_once"
        " (asyncio/base_events.py:1987)\nrun_forever (asyncio/base_events.py:641)",
        "run (threading.py:1012)",
    )
    return files(
        rank(0, stacks.RAY_GET, stacks.RAY_GET),
        engine(0, in_thread, in_thread),
        log_events=(SYNC, LATER),
    )


_POLL = """
_update_bucket_weights_from_distributed (slime/update_weight_from_distributed.py:214)
_send_weights (slime/update_weight_from_distributed.py:140)
update_weights (slime/backends/megatron_utils/actor.py:574)
"""


def _refused_bucket(frames: str) -> LogEvent:
    return error_of("500 Server Error: /update_weights", "HTTPError", frames, rank=1)


def lock_leaked_by_error__fires_actor_idle() -> Evidence:
    error = _refused_bucket(
        "raise_for_status (requests/models.py:1026)\n"
        "_update_bucket_weights_from_distributed (slime/update_weight_from_distributed.py:226)"
    )
    lock = Process("pid 77", "other", pid=77, command="ray::Lock", stacks=(sample(ACTOR_LOOP),))
    return files(rank(0, _POLL), rank(1, _POLL), *waiting(2), lock, log_events=(SYNC, error))


def lock_leaked_by_error__silent_holder_works() -> Evidence:
    error = _refused_bucket(
        "raise_for_status (requests/models.py:1026)\n"
        "_update_bucket_weights_from_distributed (slime/update_weight_from_distributed.py:226)"
    )
    return files(rank(0, _POLL), rank(1, stacks.SEND_CHUNK), log_events=(SYNC, error))


def jit_lock_left_behind__silent_lock_of_this_run() -> Evidence:
    poll = """
sleep (filelock/_api.py:344)
acquire (filelock/_api.py:344)
build_and_load (flashinfer/jit/core.py:301)
"""
    listed = log(
        "-rw-r--r-- 1 u u 0 Aug 26 19:12 /c/batch.lock",
        "ls.txt",
        kind="lock_file",
        time_s=1000.0,
        fields={"path": "/c/batch.lock"},
    )
    begun = log("Capture cuda graph begin", "sglang.log", 2, "compiling", engine=0, time_s=900.0)
    return files(*(engine(0, poll, worker=w) for w in range(2)), log_events=(begun, listed))


def gil_held__silent_dumps_of_two_tools() -> Evidence:
    python = sample("quantize (job.py:52)\nmain (job.py:35)", owns_gil=True, active=True, at=10.0)
    native = sample("quantize_blocks (libspin.so)", source="gdb", at=40.0)
    busy = ActivitySample(taken_at_s=40.0, threads=(ThreadActivity(1001, "python", "R"),))
    return files(rank(1, python, native, activity=(busy,)), rank(0, ALL_REDUCE))
