"""Cases whose end is on the engines' side: refused, paused, locked, dead."""

from __future__ import annotations

from tests.rules import stacks
from tests.rules.building import engine, files, live, log, position, rank, sample
from tests.rules.shared_parts import LATER, SYNC
from watchdog.evidence import Evidence, LogEvent


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
    return files(*_waiting(), log_events=(SYNC, *_refused(20), LATER))


def flush_refused__fires_stuck_running_requests() -> Evidence:
    return files(*_waiting(), log_events=(SYNC, *_refused(12, "0", "3"), LATER))


def flush_refused__silent_granted_in_the_end() -> Evidence:
    granted = _control("flush", "end", "Cache flushed successfully!", 60, 60.0)
    return files(*_waiting(), log_events=(SYNC, *_refused(20), granted, LATER))


_UNLOAD = _control(
    "unload_lora", "begin", "Start unload Lora adapter. Lora name=lora", 2, 25.0, name="lora"
)


def lora_unload_waits_for_requests__fires_last_line() -> Evidence:
    return files(*_waiting(), log_events=(SYNC, _UNLOAD, LATER))


def lora_unload_waits_for_requests__silent_completed() -> Evidence:
    done = _control("unload_lora", "end", "LoRA adapter unloading completes", 3, 26.0)
    return files(*_waiting(), log_events=(SYNC, _UNLOAD, done, LATER))


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
    return files(*_waiting(), log_events=(SYNC, *loads, LATER))


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
    return files(*_waiting(), log_events=(SYNC, *events, LATER))


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
    return files(rank(0, stack, stack), log_events=(SYNC, done, pause, *held, LATER))


def engine_left_paused__silent_resumed() -> Evidence:
    pause = _control("pause", "end", "pause_generation: aborted 0 requests", 2, 22.0)
    resume = _control("resume", "end", '"POST /continue_generation HTTP/1.1" 200', 3, 30.0)
    return files(rank(0, _ROLLOUT, _ROLLOUT), log_events=(SYNC, pause, resume, LATER))


def engine_error_ignored__fires_refused_update() -> Evidence:
    refused = _control(
        "update", "error", '"POST /update_weights_from_tensor HTTP/1.1" 400 Bad Request', 3, 30.0
    )
    poll = (
        "get_weight_version (my_rl/sync.py:80)\nwait_for_weight_version"
        " (my_rl/sync.py:61)\nsync (my_rl/sync.py:20)"
    )
    ranks = [rank(0, poll, poll), *(rank(r, stacks.GLOO_BARRIER) for r in (1, 2))]
    return files(*ranks, log_events=(SYNC, refused, LATER))


def engine_error_ignored__silent_repeated_with_success() -> Evidence:
    refused = _control(
        "update", "error", '"POST /update_weights_from_tensor HTTP/1.1" 503', 3, 30.0
    )
    taken = _control("update", "end", '"POST /update_weights_from_tensor HTTP/1.1" 200 OK', 4, 31.0)
    return files(*_waiting(), log_events=(SYNC, refused, taken, LATER))


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
    return files(*(rank(r, _ZMQ, _ZMQ) for r in range(3)), log_events=(SYNC, error, LATER))


def zmq_peer_lost__silent_others_in_a_barrier() -> Evidence:
    ranks = [rank(0, _ZMQ, _ZMQ), *(rank(r, stacks.GLOO_BARRIER) for r in (1, 2))]
    return files(*ranks, log_events=(SYNC, LATER))


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
    return files(*_waiting(), worker, log_events=(SYNC, LATER))


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
    return files(*_waiting(), log_events=(SYNC, late, crash))


_JOIN_A = _control(
    "init_group", "begin", "init custom process group: world_size=9, group_name=slime-pp_0", 1, 5.0
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
    return files(rank(0, _ROLLOUT, _ROLLOUT), *workers, log_events=(SYNC, arguments, wake, LATER))


def graph_registered_before_resume__silent_registration_off() -> Evidence:
    wake = _control("wake", "end", '"POST /resume_memory_occupation HTTP/1.1" 200', 3, 25.0)
    workers = [engine(0, _REPLAY, _REPLAY, worker=w) for w in range(3)]
    return files(
        rank(0, _ROLLOUT, _ROLLOUT),
        *workers,
        log_events=(SYNC, wake, LATER),
        environment={"NCCL_GRAPH_REGISTER": "0"},
    )
