"""Cases whose end is on the engines' side: refused, paused, locked, dead."""

from __future__ import annotations

from tests.rules import stacks
from tests.rules.building import engine, files, live, log, position, rank, sample
from watchdog.evidence import Evidence, LogEvent

_SYNC = log("Timer update_weights start", kind="trainer_phase", time_s=20.0, rank=0)
_LATER = log("NodeManager: 8 workers, 0 queued tasks", line=9, kind="ray_idle", time_s=1900.0)


def _control(op: str, stage: str, text: str, line: int, time_s: float, **fields: str) -> LogEvent:
    return log(
        text,
        "engine0.log",
        line,
        "engine_control",
        engine=0,
        time_s=time_s,
        fields={"op": op, "stage": stage, **fields},
    )


def _refused(times: int, queued: str = "41", running: str = "0") -> tuple[LogEvent, ...]:
    text = (
        f"Cache not flushed because there are pending requests."
        f" #queue-req: {queued}, #running-req: {running}"
    )
    return tuple(
        _control("flush", "retry", text, 10 + i, 30.0 + i, queued=queued, running=running)
        for i in range(times)
    )


def _waiting() -> list:
    return [rank(0, stacks.RAY_GET), *(rank(r, stacks.GLOO_BARRIER) for r in (1, 2, 3))]


def flush_refused__fires_constant_queue() -> Evidence:
    return files(*_waiting(), log_events=(_SYNC, *_refused(20), _LATER))


def flush_refused__fires_stuck_running_requests() -> Evidence:
    return files(*_waiting(), log_events=(_SYNC, *_refused(12, "0", "3"), _LATER))


def flush_refused__silent_granted_in_the_end() -> Evidence:
    granted = _control("flush", "end", "Cache flushed successfully!", 60, 60.0)
    return files(*_waiting(), log_events=(_SYNC, *_refused(20), granted, _LATER))


_UNLOAD = _control(
    "unload_lora", "begin", "Start unload Lora adapter. Lora name=lora", 2, 25.0, name="lora"
)


def lora_unload_waits_for_requests__fires_last_line() -> Evidence:
    return files(*_waiting(), log_events=(_SYNC, _UNLOAD, _LATER))


def lora_unload_waits_for_requests__silent_completed() -> Evidence:
    done = _control("unload_lora", "end", "LoRA adapter unloading completes", 3, 26.0)
    return files(*_waiting(), log_events=(_SYNC, _UNLOAD, done, _LATER))


def adapter_versions_accumulate__fires_six_loads() -> Evidence:
    loads = [
        _control(
            "load_lora",
            "begin" if i == 6 else "end",
            f"Start load Lora adapter. Lora name=v{i}",
            i,
            20.0 + i,
            name=f"v{i}",
        )
        for i in range(1, 7)
    ]
    return files(*_waiting(), log_events=(_SYNC, *loads, _LATER))


def adapter_versions_accumulate__silent_unloaded_each_time() -> Evidence:
    events = []
    for i in range(1, 7):
        events.append(
            _control(
                "load_lora", "end", "LoRA adapter loading completes", 2 * i, 20.0 + i, name=f"v{i}"
            )
        )
        events.append(
            _control("unload_lora", "end", "LoRA adapter unloading completes", 2 * i + 1, 20.5 + i)
        )
    return files(*_waiting(), log_events=(_SYNC, *events, _LATER))


_HELD = "generation is paused, holding request (held: 64)"
_ROLLOUT = """
wait (areal/core/workflow_executor.py:812)
prepare_batch (areal/core/dist_rollout.py:118)
main (gsm8k_rl.py:141)
"""


def _held(line: int, time_s: float) -> LogEvent:
    return log(_HELD, "engine0.log", line, "requests_held", engine=0, time_s=time_s)


def engine_left_paused__fires_held_requests() -> Evidence:
    pause = _control("pause", "end", "pause_generation: aborted 0 requests", 2, 22.0)
    done = log(
        "Loading weights from disk done in 4.8s", line=2, kind="sync_done", time_s=25.0, rank=0
    )
    held = [_held(5 + i, 100.0 + 300 * i) for i in range(4)]
    stack = sample(_ROLLOUT)
    return files(rank(0, stack, stack), log_events=(_SYNC, done, pause, *held, _LATER))


def engine_left_paused__silent_resumed() -> Evidence:
    pause = _control("pause", "end", "pause_generation: aborted 0 requests", 2, 22.0)
    resume = _control("resume", "end", '"POST /continue_generation HTTP/1.1" 200', 3, 30.0)
    return files(rank(0, _ROLLOUT, _ROLLOUT), log_events=(_SYNC, pause, resume, _LATER))


def engine_error_ignored__fires_refused_update() -> Evidence:
    refused = _control(
        "update", "error", '"POST /update_weights_from_tensor HTTP/1.1" 400 Bad Request', 3, 30.0
    )
    poll = (
        "get_weight_version (my_rl/sync.py:80)\nwait_for_weight_version"
        " (my_rl/sync.py:61)\nsync (my_rl/sync.py:20)"
    )
    ranks = [rank(0, poll, poll), *(rank(r, stacks.GLOO_BARRIER) for r in (1, 2))]
    return files(*ranks, log_events=(_SYNC, refused, _LATER))


def engine_error_ignored__silent_repeated_with_success() -> Evidence:
    refused = _control(
        "update", "error", '"POST /update_weights_from_tensor HTTP/1.1" 503', 3, 30.0
    )
    taken = _control("update", "end", '"POST /update_weights_from_tensor HTTP/1.1" 200 OK', 4, 31.0)
    return files(*_waiting(), log_events=(_SYNC, refused, taken, _LATER))


def engine_never_answers__fires_handler_waits() -> Evidence:
    loop = "select (selectors.py:415)\nserve_forever (socketserver.py:232)"
    handler = (
        "wait (threading.py:355)\nwait_for_running_requests (engine.py:71)\ndo_POST (engine.py:99)"
    )
    caller = rank(0, stacks.HTTP_POST, position=position("send_chunk", age=7.0))
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1, 2))
    others = [rank(r, stacks.GLOO_BARRIER, position=where) for r in (1, 2)]
    return live(caller, *others, engine(0, sample(loop, handler)))


def engine_never_answers__silent_engine_works() -> Evidence:
    first = "load_rows (engine.py:20)\nupdate_weights (engine.py:40)\ndo_POST (engine.py:99)"
    then = "cast_rows (engine.py:25)\nupdate_weights (engine.py:40)\ndo_POST (engine.py:99)"
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1))
    return live(
        rank(0, stacks.HTTP_POST, position=position("send_chunk", age=7.0)),
        rank(1, stacks.GLOO_BARRIER, position=where),
        engine(0, first, then),
    )


_ZMQ = """
recv (zmq/sugar/socket.py:856)
send_buffer_group_overlap (unirl/sync/zmq_sender.py:90)
update_weights (unirl/sync/zmq_sender.py:40)
"""


def zmq_peer_lost__fires_engine_traceback() -> Evidence:
    error = log(
        "RuntimeError: shape mismatch",
        "engine0.log",
        5,
        "traceback",
        engine=0,
        time_s=30.0,
        fields={"exception": "RuntimeError", "frames": "load_weights (vllm/model.py:40)"},
    )
    return files(*(rank(r, _ZMQ, _ZMQ) for r in range(3)), log_events=(_SYNC, error, _LATER))


def zmq_peer_lost__silent_others_in_a_barrier() -> Evidence:
    ranks = [rank(0, _ZMQ, _ZMQ), *(rank(r, stacks.GLOO_BARRIER) for r in (1, 2))]
    return files(*ranks, log_events=(_SYNC, _LATER))


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


_DUMMY = """
all_reduce (torch/distributed/distributed_c10d.py:2927)
coordinate_batch_across_dp (vllm/v1/worker/dp_utils.py:192)
execute_dummy_batch (vllm/v1/engine/core.py:489)
run_busy_loop (vllm/v1/engine/core.py:1349)
"""
_CORE_UPDATE = """
synchronize (torch/cuda/__init__.py:1083)
receive_weights (vllm/distributed/weight_transfer/nccl_engine.py:240)
update_weights (vllm/v1/worker/gpu_worker.py:1012)
collective_rpc (vllm/v1/engine/core.py:522)
run_busy_loop (vllm/v1/engine/core.py:1331)
"""


def core_woken_after_pause__fires_dummy_batch() -> Evidence:
    wave = log("EngineCore starting idle loop for wave 9.", "vllm.log", 4, "dp_wave", engine=0)
    return files(engine(0, _CORE_UPDATE, pid=51), engine(0, _DUMMY, worker=1), log_events=(wave,))


def core_woken_after_pause__silent_both_update() -> Evidence:
    return files(engine(0, _CORE_UPDATE, pid=51), engine(0, _CORE_UPDATE, worker=1))


def engine_dead__fires_worker_gone() -> Evidence:
    worker = engine(1, worker=2, status="dead", status_detail="exit code -6")
    return files(*_waiting(), worker, log_events=(_SYNC, _LATER))


def engine_dead__silent_taken_down_after_time_out() -> Evidence:
    late = log(
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3",
        line=3,
        kind="nccl_watchdog_timeout",
        time_s=700.0,
        rank=1,
    )
    crash = log(
        "Received sigquit from a child process.",
        "engine0.log",
        9,
        "engine_child_failed",
        engine=0,
        time_s=800.0,
    )
    return files(*_waiting(), log_events=(_SYNC, late, crash))


_JOIN_A = _control(
    "init_group", "begin", "init custom process group: world_size=9, group_name=slime-pp_0", 1, 5.0
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
    return files(*trainers, *engines, log_events=(_SYNC, *joins, _LATER))


def group_creation_cycle__silent_one_source() -> Evidence:
    trainers = [rank(0, _CONNECT, _CONNECT), *(rank(r, stacks.GLOO_BARRIER) for r in (1, 2, 3))]
    return files(
        *trainers,
        engine(0, _ENGINE_JOIN, worker=0),
        log_events=(_SYNC, _group_join(0, "slime-pp_0"), _LATER),
    )


_REPLAY = """
synchronize (torch/cuda/streams.py:105)
replay (sglang/srt/model_executor/cuda_graph_runner.py:900)
forward_batch_generation (sglang/srt/managers/tp_worker.py:240)
event_loop_overlap (sglang/srt/managers/scheduler.py:1146)
"""


def graph_registered_before_resume__fires_first_replay() -> Evidence:
    arguments = log(
        "server_args=ServerArgs(tp_size=16, enable_memory_saver=True)",
        "engine0.log",
        1,
        "engine_arguments",
        engine=0,
    )
    wake = _control("wake", "end", '"POST /resume_memory_occupation HTTP/1.1" 200', 3, 25.0)
    workers = [engine(0, _REPLAY, _REPLAY, worker=w) for w in range(3)]
    return files(rank(0, _ROLLOUT, _ROLLOUT), *workers, log_events=(_SYNC, arguments, wake, _LATER))


def graph_registered_before_resume__silent_registration_off() -> Evidence:
    wake = _control("wake", "end", '"POST /resume_memory_occupation HTTP/1.1" 200', 3, 25.0)
    workers = [engine(0, _REPLAY, _REPLAY, worker=w) for w in range(3)]
    return files(
        rank(0, _ROLLOUT, _ROLLOUT),
        *workers,
        log_events=(_SYNC, wake, _LATER),
        environment={"NCCL_GRAPH_REGISTER": "0"},
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
        log_events=(_SYNC, warned, _LATER),
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
        log_events=(_SYNC, _LATER),
    )
