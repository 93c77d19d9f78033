"""Cases of members that ended or were stopped, and of refusals; and their look-alikes."""

from __future__ import annotations

from tests.rules import stacks
from tests.rules.building import blocked, engine, files, live, log, position, rank, sample
from tests.rules.shared_parts import ACTOR_LOOP, ALL_REDUCE, LATER, ROLLOUT, SYNC, error_of, waiting
from watchdog.evidence import Evidence, LogEvent, Process

_LATE = log(
    "Timed out waiting 1800000ms for recv operation to complete",
    line=8,
    kind="gloo_recv_timeout",
    time_s=1850.0,
    rank=2,
)
_EMPTY_CACHE = """
empty_cache (torch/cuda/memory.py:224)
on_step (train_ddp.py:141)
main (train_ddp.py:202)
"""
_CUDA_FREE = """
sched_yield (libc.so.6)
cuMemFree_v2 (libcuda.so.1)
cudaFree (libcudart.so.12)
c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::emptyCache (libc10_cuda.so)
"""


def member_stopped__fires_signal() -> Evidence:
    stopped = rank(
        3,
        status="stopped",
        status_detail="T (stopped)",
        activity=(blocked(1003, "do_signal_stop", "T"),),
    )
    return files(*waiting(0, 1, 2), stopped, log_events=(SYNC, LATER))


def _in_group_of_four(number: int, group: str, op: str) -> Process:
    where = position("send_chunk", op, group, 3, (0, 1, 2, 3))
    return rank(number, stacks.GLOO_BARRIER, position=where)


def _stopped_behind_others() -> Evidence:
    """Rank 1 was stopped between two collectives; the others wait for it in both."""
    stopped = rank(
        1,
        status="stopped",
        status_detail="T (stopped)",
        position=position("send_chunk", "all_reduce", "b", 9, (0, 1, 2, 3)),
        activity=(blocked(1001, "do_signal_stop", "T"),),
    )
    return live(
        _in_group_of_four(0, "a", "broadcast"),
        stopped,
        _in_group_of_four(2, "a", "broadcast"),
        _in_group_of_four(3, "b", "all_reduce"),
    )


def member_stopped__fires_others_in_two_groups() -> Evidence:
    return _stopped_behind_others()


def groups_crosswise__silent_a_member_is_stopped() -> Evidence:
    return _stopped_behind_others()


def _gone(number: int, how: str) -> Process:
    return rank(number, status="dead", status_detail=how, position=position("send_chunk"))


def member_killed__silent_ended_by_the_watchdog() -> Evidence:
    """Ranks ended as the setting asks, and by the launcher that saw it."""
    return live(
        _gone(0, "killed by signal 15 (SIGTERM)"),
        rank(1, status="stopped", status_detail="T (stopped)", position=position("send_chunk")),
        _gone(2, "exit status 86"),
        _gone(3, "exit status 86"),
    )


def member_killed__fires_before_the_watchdog_ended_the_rest() -> Evidence:
    return live(
        _gone(0, "exit status 86"),
        _gone(1, "killed by signal 9 (SIGKILL)"),
        _gone(2, "exit status 86"),
        _gone(3, "killed by signal 15 (SIGTERM)"),
    )


def member_stopped__silent_held_by_the_tool_that_looks() -> Evidence:
    traced = rank(
        3,
        stacks.GLOO_BARRIER,
        status="stopped",
        status_detail="t (tracing stop)",
        activity=(blocked(1003, "ptrace_stop", "t"),),
    )
    return files(*waiting(0, 1, 2), traced, log_events=(SYNC, LATER))


def device_freed_during_collective__fires_two_looks() -> Evidence:
    freeing = rank(3, sample(_EMPTY_CACHE), sample(_CUDA_FREE, source="gdb"))
    return files(*(rank(r, ALL_REDUCE) for r in range(3)), freeing)


def device_freed_during_collective__silent_one_look() -> Evidence:
    return files(*(rank(r, ALL_REDUCE) for r in range(3)), rank(3, _EMPTY_CACHE))


def group_port_taken__fires_first_error() -> Evidence:
    error = error_of(
        "The server socket has failed to listen on any local network address. port: 38811,"
        " name: EADDRINUSE, message: address already in use",
        "DistNetworkError",
        rank=0,
    )
    return files(rank(0), *waiting(1, 2), log_events=(SYNC, error, _LATE))


def group_port_taken__silent_second_start() -> Evidence:
    error = error_of("[Errno 98] Address already in use", "OSError", rank=0, time_s=1900.0, line=12)
    return files(*waiting(0, 1, 2), log_events=(SYNC, _LATE, error))


def disk_full__fires_checkpoint() -> Evidence:
    error = error_of("[Errno 28] No space left on device: '/scratch/ckpt'", "OSError", rank=0)
    return files(rank(0), *waiting(1, 2), log_events=(SYNC, error, _LATE))


def disk_full__silent_shared_memory() -> Evidence:
    error = error_of("No space left on device: '/dev/shm/nccl-x'", "OSError", rank=0)
    return files(rank(0), *waiting(1, 2), log_events=(SYNC, error, _LATE))


def driver_failed__fires_idle_actors() -> Evidence:
    error = error_of("name 'rollout_id' is not defined", "NameError", file="driver.log")
    return files(*(rank(r, ACTOR_LOOP) for r in range(2)), log_events=(SYNC, error))


def driver_failed__silent_error_was_handled() -> Evidence:
    error = error_of("connection refused once", "TrackerError", file="driver.log")
    goes_on = log("Timer actor_train start", kind="trainer_phase", line=7, time_s=90.0, rank=0)
    return files(*(rank(r, ACTOR_LOOP) for r in range(2)), log_events=(SYNC, error, goes_on))


def driver_failed__silent_actors_at_work() -> Evidence:
    error = error_of("name 'x' is not defined", "NameError", file="driver.log")
    return files(rank(0, stacks.RAY_GET), *waiting(1, 2), log_events=(SYNC, error))


def member_killed_by_memory_limit__fires_evicted() -> Evidence:
    gone = rank(3, status="dead", status_detail="Evicted: The node was low on resource: memory.")
    lost = log("Connection closed by peer [10.0.0.9]:1", line=7, kind="gloo_peer_closed", rank=0)
    return files(*waiting(0, 1), gone, log_events=(SYNC, lost))


def member_killed_by_memory_limit__silent_evicted_for_disk() -> Evidence:
    gone = rank(
        3, status="dead", status_detail="Evicted: The node was low on resource: ephemeral-storage."
    )
    return files(*waiting(0, 1), gone, log_events=(SYNC,))


def device_out_of_memory__fires_memory_saver() -> Evidence:
    said = log(
        "[torch_memory_saver.cpp] CUresult error: 2 (out of memory)",
        line=5,
        kind="memory_saver_error",
        time_s=30.0,
        rank=1,
    )
    return files(*waiting(0, 2), rank(1), log_events=(SYNC, said, _LATE))


def device_out_of_memory__silent_invalid_argument() -> Evidence:
    said = log(
        "[torch_memory_saver.cpp] CUresult error: 1 (invalid argument)",
        line=5,
        kind="memory_saver_error",
        time_s=30.0,
        rank=1,
    )
    return files(*waiting(0, 2), rank(1), log_events=(SYNC, said, _LATE))


def engine_list_differs__fires_told_differently() -> Evidence:
    def told(number: int, new: bool) -> LogEvent:
        text = f"has_new_engines={new} engines={3 + new}"
        return log(
            text,
            kind="engine_list",
            line=10 + number,
            rank=number,
            time_s=21.0,
            fields={"has_new": str(new)},
        )

    connecting = """
_new_process_group_helper (torch/distributed/distributed_c10d.py:1996)
new_group (torch/distributed/distributed_c10d.py:5118)
connect_rollout_engines (miles/update_weight_from_tensor.py:118)
update_weights (miles/backends/megatron_utils/actor.py:731)
"""
    return files(
        *(rank(r, connecting) for r in range(3)),
        *waiting(3),
        log_events=(SYNC, told(0, True), told(3, False)),
    )


_PAUSE = log(
    '"POST /pause_generation HTTP/1.1" 200 OK',
    "server.log",
    3,
    "engine_control",
    engine=0,
    time_s=100.0,
    fields={"op": "pause", "stage": "end"},
)


def _metrics(running: int, queued: int) -> LogEvent:
    return log(
        f"sglang:num_running_reqs {running}.0 sglang:num_queue_reqs {queued}.0",
        "metrics.txt",
        2,
        "engine_load",
        engine=0,
        fields={"running": str(running), "queued": str(queued), "source": "metrics"},
    )


def _answered_until(time_s: float) -> LogEvent:
    return log(
        '"GET /health HTTP/1.1" 200 OK', "server.log", 9, "http_access", engine=0, time_s=time_s
    )


def engine_left_paused__fires_metrics_page() -> Evidence:
    return files(
        rank(0, ROLLOUT),
        engine(0, stacks.SCHEDULER_IDLE),
        log_events=(_metrics(0, 64), _PAUSE, _answered_until(9000.0)),
    )


def engine_left_paused__silent_pause_is_young() -> Evidence:
    return files(
        rank(0, ROLLOUT),
        engine(0, stacks.SCHEDULER_IDLE),
        log_events=(_metrics(0, 64), _PAUSE, _answered_until(130.0)),
    )


def engine_left_paused__silent_nothing_asked() -> Evidence:
    return files(
        rank(0, ROLLOUT),
        engine(0, stacks.SCHEDULER_IDLE),
        log_events=(_metrics(0, 0), _PAUSE, _answered_until(9000.0)),
    )
