"""Cases of jobs in which everything lives: actors, workers, decisions, circles, counters."""

from __future__ import annotations

from tests.rules.building import GLOO_BARRIER, engine, files, log, rank, sample, thread
from tests.rules.shared_parts import ROLLOUT
from watchdog.evidence import Collective, Evidence, LogEvent, Process, StackSample

_SAID = log("step 4 done", time_s=1000.0)
_LOOKED = log("date", "shell.txt", kind="observed_at", time_s=3000.0)

_NEW_GROUP = """
_new_process_group_helper (torch/distributed/distributed_c10d.py:1996)
_new_group_with_tag (torch/distributed/distributed_c10d.py:5223)
new_group (torch/distributed/distributed_c10d.py:5118)
initialize_tensor_parallelism (transformers/integrations/tensor_parallel.py:104)
"""


def _creates(number: int, ranks: str, local: str = "False") -> Process:
    made = thread(_NEW_GROUP)
    for frame in made.frames:
        if frame.function == "new_group":
            frame.locals.update({"ranks": ranks, "use_local_synchronization": local})
    return rank(number, StackSample((made,), "py-spy"))


def group_lists_differ__fires_halves() -> Evidence:
    halves = [_creates(r, "[0, 1]" if r < 2 else "[2, 3]") for r in range(4)]
    return files(*halves, log_events=(_SAID, _LOOKED))


def group_lists_differ__silent_only_members_meet() -> Evidence:
    halves = [_creates(r, "[0, 1]" if r < 2 else "[2, 3]", "True") for r in range(4)]
    return files(*halves, log_events=(_SAID, _LOOKED))


def group_lists_differ__silent_one_list() -> Evidence:
    return files(*(_creates(r, "[0, 1, 2, 3]") for r in range(4)), log_events=(_SAID, _LOOKED))


_PREFETCH = """
all_reduce (torch/distributed/distributed_c10d.py:2962)
can_terminate_prefetch (sglang/srt/mem_cache/hiradix_cache.py:612)
check_prefetch_progress (sglang/srt/mem_cache/hiradix_cache.py:640)
event_loop_overlap (sglang/srt/managers/scheduler.py:1151)
"""
_REQUESTS = """
broadcast (torch/distributed/distributed_c10d.py:2829)
broadcast_pyobj (sglang/srt/utils/common.py:1204)
recv_requests (sglang/srt/managers/scheduler.py:1243)
event_loop_overlap (sglang/srt/managers/scheduler.py:1146)
"""
_LOOP = """
event_loop_overlap (sglang/srt/managers/scheduler.py:1146)
run_scheduler_process (sglang/srt/managers/scheduler.py:3012)
"""


def worker_skipped_collective__fires_next_turn() -> Evidence:
    workers = [engine(0, _REQUESTS if w == 3 else _PREFETCH, worker=w) for w in range(4)]
    return files(*workers, log_events=(_SAID, _LOOKED))


def worker_skipped_collective__silent_idle_engine() -> Evidence:
    workers = [engine(0, _LOOP if w == 0 else _REQUESTS, worker=w) for w in range(4)]
    return files(*workers, log_events=(_SAID, _LOOKED))


def worker_skipped_collective__silent_one_look_at_work() -> Evidence:
    workers = [engine(0, _REQUESTS if w == 3 else _PREFETCH, worker=w) for w in range(4)]
    return files(*workers, log_events=(_SAID,))


_CONNECT = """
new_group (torch/distributed/distributed_c10d.py:5118)
connect_rollout_engines (miles/backends/megatron_utils/update_weight/tensor.py:118)
update_weights (miles/backends/megatron_utils/actor.py:731)
"""


def _decides(number: int, value: str, name: str = "has_new_engines") -> LogEvent:
    fields = {"name": name, "value": value}
    return log(f"{name}={value}", line=number + 1, kind="rank_decision", rank=number, fields=fields)


def ranks_decided_differently__fires_two_branches() -> Evidence:
    ranks = [rank(r, GLOO_BARRIER if r == 2 else _CONNECT) for r in range(4)]
    return files(*ranks, log_events=tuple(_decides(r, str(r != 2)) for r in range(4)))


def ranks_decided_differently__silent_one_place() -> Evidence:
    ranks = [rank(r, GLOO_BARRIER, GLOO_BARRIER) for r in range(4)]
    said = tuple(_decides(r, str(r == 0), "is_source") for r in range(4))
    return files(*ranks, log_events=said)


def ranks_decided_differently__silent_split_otherwise() -> Evidence:
    ranks = [rank(r, GLOO_BARRIER if r == 2 else _CONNECT) for r in range(4)]
    said = tuple(_decides(r, str(r == 0), "is_source") for r in range(4))
    return files(*ranks, log_events=said)


_UPDATE = """
wait (threading.py:359)
result (concurrent/futures/_base.py:451)
update_weight (open_instruct/vllm_utils.py:811)
actor_method_executor (ray/_private/function_manager.py:689)
"""
_HEALTH = """
get_objects (ray/_private/worker.py:958)
get (ray/_private/worker.py:2858)
health_check_fn (open_instruct/grpo_fast.py:3012)
run_training (open_instruct/grpo_fast.py:3105)
"""


def _task(line: int, method: str, state: str) -> LogEvent:
    fields = {"name": f"LLMRayActor.{method}", "state": state, "actor": "vllm_engine_0"}
    text = f"LLMRayActor.{method} {state} vllm_engine_0"
    return log(text, "tasks.txt", line, kind="ray_task", fields=fields, time_s=3000.0)


_TASKS = (
    _task(1, "update_weight", "RUNNING"),
    _task(2, "check_background_threads", "PENDING_ACTOR_TASK_ARGS_FETCH_OR_ORDERING"),
)


def _driver(stack: str) -> Process:
    return Process("driver", "driver", pid=5010, stacks=(sample(stack),))


def call_queued_behind_its_caller__fires_health_check() -> Evidence:
    events = (_SAID, _LOOKED, *_TASKS)
    return files(engine(0, _UPDATE), _driver(_HEALTH), log_events=events)


def call_queued_behind_its_caller__silent_young() -> Evidence:
    events = (log("step 4 done", time_s=2990.0), _LOOKED, *_TASKS)
    return files(engine(0, _UPDATE), _driver(_HEALTH), log_events=events)


def call_queued_behind_its_caller__silent_waits_for_the_running_call() -> Evidence:
    caller = _HEALTH.replace("health_check_fn", "update_weight")
    return files(engine(0, _UPDATE), _driver(caller), log_events=(_SAID, _LOOKED, *_TASKS))


_RECV = """
recv (torch/distributed/distributed_c10d.py:2799)
exchange (job.py:62)
main (job.py:43)
"""
_STAGE_0 = """
forward (torch/nn/modules/linear.py:134)
train_step (job.py:40)
"""


def circle_of_receives__fires_all_receive() -> Evidence:
    return files(*(rank(r, _RECV) for r in range(4)), log_events=(_SAID, _LOOKED), world_size=4)


def circle_of_receives__silent_first_stage_computes() -> Evidence:
    ranks = [rank(r, _RECV if r else _STAGE_0) for r in range(4)]
    return files(*ranks, log_events=(_SAID, _LOOKED), world_size=4)


def circle_of_receives__silent_one_rank_unknown() -> Evidence:
    ranks = [rank(r, _RECV) for r in range(1, 4)]
    return files(*ranks, log_events=(_SAID, _LOOKED), world_size=4)


def _recorded(number: int, num_bytes: int, op: str = "broadcast") -> Process:
    made = Collective(op, "0", (0, 1, 2, 3), 402, num_bytes)
    return rank(number, collectives=(made,))


def different_collectives__fires_other_size() -> Evidence:
    ranks = [_recorded(r, 262_144 if r == 3 else 128) for r in range(4)]
    return files(*ranks, log_events=(_SAID, _LOOKED), world_size=4)


def different_collectives__silent_uneven_gather() -> Evidence:
    ranks = [_recorded(r, 128 + r, "all_to_all") for r in range(4)]
    return files(*ranks, log_events=(_SAID, _LOOKED), world_size=4)


def same_collective_everywhere__silent_other_size() -> Evidence:
    return different_collectives__fires_other_size()


_GATHER = """
wait_tensor (torch/distributed/_functional_collectives.py:142)
full_tensor (torch/distributed/tensor/_api.py:594)
_iter_hf_state_tensors (automodel/checkpoint/export.py:88)
sync_weights (rl/sync.py:61)
"""
_NORM = """
wait_tensor (torch/distributed/_functional_collectives.py:142)
all_reduce (torch/distributed/_functional_collectives.py:201)
clip_grad_norm_ (rl/clip.py:31)
train_step (rl/train.py:96)
"""


def rank_zero_only_export__fires_others_in_next_step() -> Evidence:
    return files(rank(0, _GATHER), *(rank(r, _NORM) for r in (1, 2, 3)))


def rank_zero_only_export__silent_all_export() -> Evidence:
    return files(*(rank(r, _GATHER) for r in range(4)), log_events=(_SAID, _LOOKED))


def loopback_address__silent_syncs_since() -> Evidence:
    warned = log(
        "Using the loopback address as fallback.", kind="gloo_loopback", time_s=1.0, rank=0
    )
    done = log("Timer update_weights end (elapsed: 8.8s)", line=2, kind="trainer_phase", time_s=9.0)
    return files(*(rank(r, _CONNECT, _CONNECT) for r in range(2)), log_events=(warned, done))


def _channel(pid: int, detail: str, line: int) -> LogEvent:
    fields = {"detail": detail}
    return log(f"NCCL INFO {detail}", line=line, kind="nccl_transport", pid=pid, fields=fields)


_PUSH = """
synchronize (torch/cuda/streams.py:105)
update_named_param (trl/extras/vllm_client.py:312)
sync_weights (trl/generation/vllm_generation.py:430)
"""
_TAKE = """
synchronize (torch/cuda/streams.py:105)
update_named_param (trl/scripts/vllm_serve.py:141)
run_busy_loop (vllm/v1/engine/core.py:934)
"""
_POLLS = log(
    "both GPUs 100 %, 75 W of 450", kind="gpu_spinning", fields={"power_w": "75", "limit_w": "450"}
)


def transport_settings_differ__fires_other_paths() -> Evidence:
    lines = (
        _channel(1000, "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", 1),
        _channel(2000, "Channel 00/0 : 1[1] -> 0[0] via P2P/IPC", 2),
    )
    return files(rank(0, _PUSH), engine(0, _TAKE), log_events=(*lines, _POLLS))


def transport_settings_differ__silent_one_path() -> Evidence:
    lines = (
        _channel(1000, "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC", 1),
        _channel(2000, "Channel 00/0 : 1[1] -> 0[0] via P2P/IPC", 2),
    )
    return files(rank(0, _PUSH), engine(0, _TAKE), log_events=(*lines, _POLLS))


def _paused(at_s: float, *, running: str = "0") -> tuple[LogEvent, ...]:
    control = {"op": "pause", "stage": "end"}
    return (
        log("POST /pause_generation", kind="engine_control", time_s=at_s, engine=0, fields=control),
        log("GET /health", line=2, kind="http_access", time_s=1000.0, engine=0),
        log(
            f"num_running_reqs {running}.0 num_queue_reqs 64.0",
            "metrics.txt",
            kind="engine_load",
            engine=0,
            fields={"running": running, "queued": "64", "source": "metrics"},
        ),
    )


def engine_left_paused__fires_by_metrics() -> Evidence:
    return files(rank(0, ROLLOUT), engine(0, _LOOP), log_events=_paused(20.0))


def engine_left_paused__silent_young_pause() -> Evidence:
    return files(rank(0, ROLLOUT), engine(0, _LOOP), log_events=_paused(990.0))


def engine_left_paused__silent_requests_run() -> Evidence:
    return files(rank(0, ROLLOUT), engine(0, _LOOP), log_events=_paused(20.0, running="3"))


def _counts(*times_s: float) -> tuple[LogEvent, ...]:
    return tuple(
        log(
            f"update weight: model.layers.{i}.mlp.weight",
            "vllm.log",
            i + 1,
            kind="weight_received",
            engine=0,
            time_s=time_s,
            fields={"name": "weights received, layer", "done": str(i)},
        )
        for i, time_s in enumerate(times_s)
    )


def slow_not_hung__fires_layers_arrive() -> Evidence:
    counted = _counts(2880.0, 2910.0, 2940.0, 2970.0)
    return files(rank(0, GLOO_BARRIER), engine(0, _TAKE), log_events=(*counted, _LOOKED))


def slow_not_hung__silent_layers_arrived_long_ago() -> Evidence:
    counted = _counts(880.0, 910.0, 940.0, 970.0)
    return files(rank(0, GLOO_BARRIER), engine(0, _TAKE), log_events=(*counted, _LOOKED))


def slow_not_hung__silent_nobody_tells_when_it_was_looked_at() -> Evidence:
    counted = _counts(2880.0, 2910.0, 2940.0, 2970.0)
    return files(rank(0, GLOO_BARRIER), engine(0, _TAKE), log_events=counted)


def jit_lock_left_behind__fires_same_for_long() -> Evidence:
    polls = "acquire (filelock/_api.py:344)\nbuild_and_load (flashinfer/jit/core.py:301)"
    workers = [engine(0, polls, worker=w) for w in range(2)]
    return files(*workers, log_events=(_SAID, _LOOKED))


def jit_lock_left_behind__silent_one_look() -> Evidence:
    polls = "acquire (filelock/_api.py:344)\nbuild_and_load (flashinfer/jit/core.py:301)"
    return files(*(engine(0, polls, worker=w) for w in range(2)), log_events=(_SAID,))
