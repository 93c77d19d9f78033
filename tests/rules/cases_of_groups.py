"""Cases of trainers that do not meet: groups, collectives, interfaces, transport."""

from __future__ import annotations

from tests.rules import stacks
from tests.rules.building import engine, files, live, log, position, rank
from tests.rules.shared_parts import ALL, LATER, SYNC
from watchdog.evidence import Evidence, LogEvent, Process


def _barrier(*ranks: int, **more: object) -> list[Process]:
    where = position("barrier:exit", "barrier", "gloo", 7, ALL, **more)  # type: ignore[arg-type]
    return [rank(r, stacks.GLOO_BARRIER, position=where) for r in ranks]


_SPLIT = """
__poll (libc.so.6)
bootstrapAllGather (libnccl.so.2)
commGetSplitInfo (libnccl.so.2)
ncclCommSplit (libnccl.so.2)
c10d::ProcessGroupNCCL::eagerConnectSingleDevice (libtorch_cuda.so)
_new_process_group_helper (torch/distributed/distributed_c10d.py:2110)
init_process_group (nemo_rl/distributed/collective_utils.py:84)
init_collective (nemo_rl/models/policy/workers/base_policy_worker.py:143)
"""
_OBJECTS = """
_all_gather_sizes (torch/distributed/distributed_c10d.py:3085)
all_gather_object (torch/distributed/distributed_c10d.py:3102)
prepare_refit_info (nemo_rl/models/policy/workers/megatron_policy_worker.py:1466)
"""


def communicator_split_of_bound_group__fires_native_split() -> Evidence:
    bound = log(
        "Eagerly connecting nccl backend with device cuda:0", kind="nccl_eager_connect", rank=0
    )
    return files(rank(0, _SPLIT), *(rank(r, _OBJECTS) for r in (1, 2, 3)), log_events=(bound,))


def communicator_split_of_bound_group__silent_all_split() -> Evidence:
    return files(*(rank(r, _SPLIT) for r in ALL), log_events=(SYNC, LATER))


def _announced(size: int) -> LogEvent:
    return log(
        f"BroadcastInitInfo(rank_offset=1, world_size={size})",
        kind="group_join",
        rank=0,
        fields={"world_size": str(size)},
        time_s=21.0,
    )


def group_size_mismatch__fires_second_replica_idle() -> Evidence:
    workers = [engine(0, stacks.VLLM_JOIN, worker=0), engine(0, stacks.VLLM_IDLE, worker=1)]
    return files(
        rank(0, stacks.TRAINER_JOIN),
        rank(1, stacks.GLOO_BARRIER),
        *workers,
        log_events=(_announced(3), LATER),
    )


def group_size_mismatch__silent_all_joined() -> Evidence:
    workers = [engine(0, stacks.VLLM_JOIN, worker=w) for w in (0, 1)]
    return files(
        rank(0, stacks.TRAINER_JOIN),
        rank(1, stacks.GLOO_BARRIER),
        *workers,
        log_events=(_announced(3), LATER),
    )


def stale_update_group__fires_already_initialised() -> Evidence:
    said = log(
        "Weight update group already initialized. Call close_communicator first.",
        "vllm.log",
        8,
        "error",
        engine=0,
    )
    return files(rank(0, stacks.TRAINER_JOIN, stacks.TRAINER_JOIN), log_events=(said,))


def stale_update_group__silent_closed_between() -> Evidence:
    def control(op: str, line: int) -> LogEvent:
        return log(
            f"POST /{op}",
            "vllm.log",
            line,
            "engine_control",
            engine=0,
            fields={"op": op, "stage": "end"},
        )

    events = (control("init_group", 1), control("destroy_group", 2), control("init_group", 3))
    return files(rank(0, stacks.TRAINER_JOIN, stacks.TRAINER_JOIN), log_events=events)


def group_never_joined__fires_rank_elsewhere() -> Evidence:
    wake = "wait_for_memory (my_rl/offload.py:20)\nwake_up (my_rl/actor.py:88)\nmain (train.py:9)"
    new_group = position("reload_groups", "new_group", "", None, ALL)
    others = [rank(r, stacks.NEW_GROUP, position=new_group) for r in (0, 1, 3)]
    return live(*others, rank(2, wake, wake, position=position("wake_up")))


def group_never_joined__silent_dead_member() -> Evidence:
    new_group = position("reload_groups", "new_group", "", None, ALL)
    others = [rank(r, stacks.NEW_GROUP, position=new_group) for r in (0, 1, 3)]
    return live(*others, rank(2, status="dead", status_detail="killed by signal 11"))


def rank_waits_for_file__fires_marker() -> Evidence:
    said = log(
        "Waiting for path `/run/step_4/NCCL_READY` for 600 seconds",
        kind="file_wait",
        rank=0,
        time_s=620.0,
    )
    return files(
        rank(0, stacks.FILE_POLL),
        *(rank(r, stacks.FULL_TENSOR) for r in (1, 2, 3)),
        log_events=(said,),
    )


def rank_waits_for_file__silent_all_wait() -> Evidence:
    said = log(
        "Waiting for path `/run/step_4/NCCL_READY` for 600 seconds",
        kind="file_wait",
        rank=0,
        time_s=620.0,
    )
    return files(*(rank(r, stacks.FILE_POLL, stacks.FILE_POLL) for r in ALL), log_events=(said,))


_SEND_BUCKET = """
broadcast (torch/distributed/distributed_c10d.py:2829)
_broadcast_bucket (openrlhf/trainer/ray/ppo_actor.py:311)
send (openrlhf/trainer/ray/ppo_actor.py:287)
broadcast_to_vllm (openrlhf/trainer/ray/ppo_actor.py:244)
"""


def gather_interleaved_with_send__fires_bucket_behind() -> Evidence:
    return files(rank(0, _SEND_BUCKET), *(rank(r, stacks.FULL_TENSOR) for r in (1, 2, 3)))


def gather_interleaved_with_send__silent_all_broadcast() -> Evidence:
    return files(*(rank(r, _SEND_BUCKET, _SEND_BUCKET) for r in ALL), log_events=(SYNC, LATER))


_MEET = (
    "barrier (torch/distributed/distributed_c10d.py:4818)\nmeet_in"
    " (train.py:30)\nmain (train.py:90)"
)


def _in_group(number: int, group: str, members: tuple[int, ...]) -> Process:
    return rank(number, _MEET, position=position("sync", "barrier", group, 1, members))


def groups_crosswise__fires_two_pending_groups() -> Evidence:
    members = (0, 1, 2)
    return live(
        _in_group(0, "pair_a", members),
        _in_group(1, "pair_b", members),
        _in_group(2, "pair_a", members),
    )


def groups_crosswise__silent_disjoint_groups() -> Evidence:
    return live(
        _in_group(0, "a", (0, 1)),
        _in_group(1, "a", (0, 1)),
        _in_group(2, "b", (2, 3)),
        rank(3, "load (my/load.py:4)\nmain (train.py:3)", position=position("load")),
    )


_EXPORT = """
wait_tensor (torch/distributed/_functional_collectives.py:142)
full_tensor (torch/distributed/tensor/_api.py:594)
_iter_hf_state_tensors (megatron/lite/export.py:77)
save_hf_weights (megatron/lite/export.py:30)
"""


def rank_zero_only_export__fires_others_in_barrier() -> Evidence:
    past = "barrier (torch/distributed/distributed_c10d.py:4818)\nmain (train.py:99)"
    return files(
        rank(0, _EXPORT, _EXPORT), *(rank(r, past) for r in (1, 2)), log_events=(SYNC, LATER)
    )


def rank_zero_only_export__silent_all_gather() -> Evidence:
    return files(*(rank(r, _EXPORT, _EXPORT) for r in (0, 1, 2)), log_events=(SYNC, LATER))


_CONNECTING = """
all_gather_object (torch/distributed/distributed_c10d.py:3102)
connect_rollout_engines (miles/backends/megatron_utils/update_weight/tensor.py:150)
update_weights (miles/backends/megatron_utils/actor.py:730)
"""


def engine_list_differs__fires_after_recovery() -> Evidence:
    recovered = log("recover engine 2: restarted engine", line=3, time_s=15.0)
    return files(
        *(rank(r, _CONNECTING, _CONNECTING) for r in (0, 1)),
        *(rank(r, stacks.GLOO_BARRIER) for r in (2, 3, 4)),
        log_events=(recovered, SYNC, LATER),
    )


def engine_list_differs__silent_all_connect() -> Evidence:
    return files(*(rank(r, _CONNECTING, _CONNECTING) for r in ALL), log_events=(SYNC, LATER))


_ZMQ = """
recv (zmq/sugar/socket.py:856)
send_bucket (verl/workers/rollout/bucketed_transfer.py:90)
update_weights (verl/workers/engine_workers.py:768)
"""


def ipc_socket_collision__fires_rank_zero_through() -> Evidence:
    shared = log("bind ipc:///tmp/verl/rank-0.sock", "engine0.log", 2, engine=0)
    return files(
        rank(0, stacks.GLOO_BARRIER),
        *(rank(r, _ZMQ, _ZMQ) for r in (1, 2, 3)),
        log_events=(shared, SYNC, LATER),
    )


def ipc_socket_collision__silent_all_wait() -> Evidence:
    return files(*(rank(r, _ZMQ, _ZMQ) for r in ALL), log_events=(SYNC, LATER))


def different_collectives__fires_other_operation() -> Evidence:
    other = (
        "all_reduce (torch/distributed/distributed_c10d.py:2927)\naverage_norm"
        " (train.py:40)\nmain (train.py:9)"
    )
    return live(
        *_barrier(0, 2, 3), rank(1, other, position=position("sync", "all_reduce", "gloo", 7, ALL))
    )


def different_collectives__fires_watchdog_sizes() -> Evidence:
    def timed_out(number: int, size: str) -> LogEvent:
        return log(
            f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=40, NumelIn={size})",
            line=number,
            kind="nccl_watchdog_timeout",
            rank=number,
            time_s=700.0,
            fields={"seq": "40", "op": "BROADCAST", "numel_in": size},
        )

    return files(
        *(rank(r, _SEND_BUCKET) for r in ALL),
        log_events=(timed_out(0, "512"), timed_out(1, "4096")),
    )


def different_collectives__silent_same_everywhere() -> Evidence:
    return live(*_barrier(*ALL))


def missing_rank__fires_outside_of_the_sync() -> Evidence:
    away = "wait_for_next_rollout (train.py:61)\nmain (train.py:90)"
    return live(*_barrier(0, 1, 3), rank(2, away, away, position=position(age=1.0)))


def missing_rank__silent_reads_weights() -> Evidence:
    reading = rank(2, stacks.HASH_READ, stacks.HASH_READ, position=position("read_weights"))
    return live(*_barrier(0, 1, 3), reading)


def missing_rank__silent_few_of_many_described() -> Evidence:
    return files(*(rank(r, stacks.GLOO_BARRIER) for r in (3, 21)), world_size=32)


def same_collective_everywhere__fires_same_number() -> Evidence:
    return live(*_barrier(*ALL))


def same_collective_everywhere__silent_one_number_behind() -> Evidence:
    behind = rank(
        2, stacks.GLOO_BARRIER, position=position("barrier:entry", "barrier", "gloo", 6, ALL)
    )
    return live(*_barrier(0, 1, 3), behind)


def time_out_not_applied__fires_ten_minutes() -> Evidence:
    from tests.rules.building import flags

    rebuilt = log("Reloading 9 process groups in pid 7", line=2, time_s=18.0, rank=0)
    late = log(
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3,"
        " OpType=BROADCAST, NumelIn=4, NumelOut=4, Timeout(ms)=600000)",
        line=3,
        kind="nccl_watchdog_timeout",
        time_s=700.0,
        rank=1,
        fields={"seq": "3", "op": "BROADCAST", "numel_in": "4"},
    )
    return files(
        rank(0, "load_rows (my/load.py:3)\nmain (train.py:9)"),
        rank(1, stacks.GLOO_BARRIER),
        log_events=(rebuilt, SYNC, late),
        flags=flags(distributed_timeout_minutes=60, offload_train=True),
    )


def time_out_not_applied__silent_applied() -> Evidence:
    from tests.rules.building import flags

    late = log(
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3,"
        " OpType=BROADCAST, NumelIn=4, NumelOut=4, Timeout(ms)=3600000)",
        line=3,
        kind="nccl_watchdog_timeout",
        time_s=3700.0,
        rank=1,
    )
    return files(
        rank(0, "load_rows (my/load.py:3)\nmain (train.py:9)"),
        rank(1, stacks.GLOO_BARRIER),
        log_events=(SYNC, late),
        flags=flags(distributed_timeout_minutes=60, offload_train=True),
    )
