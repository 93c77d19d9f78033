"""Cases of deaths, first errors, storage, locks and slow work."""

from __future__ import annotations

from tests.rules import stacks
from tests.rules.building import files, live, log, position, rank, sample
from tests.rules.shared_parts import LATER, SYNC
from watchdog.evidence import ActivitySample, Evidence, LogEvent, ThreadActivity

_GLOO_LATE = log(
    "Timed out waiting 1800000ms for recv operation to complete",
    line=8,
    kind="gloo_recv_timeout",
    time_s=1850.0,
    rank=2,
)


def _waiting(*ranks: int) -> list:
    return [rank(r, stacks.GLOO_BARRIER) for r in ranks]


def _kernel(pid: int) -> LogEvent:
    text = (
        f"Memory cgroup out of memory: Killed process {pid} (sglang::schedul) anon-rss:61220188kB"
    )
    return log(text, "dmesg.txt", 4, "oom_kill", fields={"killed_pid": str(pid)})


def member_killed_by_memory_limit__fires_kernel_log() -> Evidence:
    crash = log(
        "Subprocess scheduler_2 (pid=27114) crashed with exit code -9.",
        "engine1.log",
        7,
        "engine_worker_died",
        engine=1,
        time_s=40.0,
        fields={"died_pid": "27114", "exit_code": "-9"},
    )
    return files(
        rank(0, stacks.SEND_CHUNK),
        *_waiting(1, 2),
        log_events=(SYNC, crash, _kernel(27114), LATER),
    )


def member_killed_by_memory_limit__silent_other_jobs_process() -> Evidence:
    gone = rank(1, status="dead", status_detail="exit status 1")
    return files(rank(0, stacks.GLOO_BARRIER), gone, log_events=(_kernel(99999),))


def _error(text: str, exception: str, **more: object) -> LogEvent:
    return log(
        f"{exception}: {text}",
        line=5,
        kind="traceback",
        time_s=30.0,
        fields={"exception": exception, "message": text},
        **more,
    )


def device_out_of_memory__fires_earliest_error() -> Evidence:
    error = _error("CUDA out of memory. Tried to allocate 2.00 GiB", "OutOfMemoryError", rank=1)
    return files(*_waiting(0, 2, 3), log_events=(SYNC, error, _GLOO_LATE))


def device_out_of_memory__silent_after_the_time_out() -> Evidence:
    late = log(
        "OutOfMemoryError: CUDA out of memory.",
        line=9,
        kind="traceback",
        time_s=1900.0,
        rank=1,
        fields={"exception": "OutOfMemoryError"},
    )
    return files(*_waiting(0, 2, 3), log_events=(SYNC, _GLOO_LATE, late))


def ipc_needs_ptrace__fires_pidfd() -> Evidence:
    error = log(
        "RuntimeError: pidfd_getfd: Operation not permitted",
        "engine0.log",
        9,
        "traceback",
        engine=0,
        time_s=30.0,
        fields={
            "exception": "RuntimeError",
            "message": "pidfd_getfd: Operation not permitted",
            "frames": "rebuild_cuda_tensor (r.py:1)",
        },
    )
    variables = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    return files(
        rank(0, stacks.SEND_CHUNK),
        *_waiting(1),
        log_events=(SYNC, error, LATER),
        environment=variables,
    )


def ipc_needs_ptrace__silent_accepted_before() -> Evidence:
    taken = log(
        '"POST /update_weights_from_tensor HTTP/1.1" 200 OK',
        "engine0.log",
        3,
        "engine_control",
        engine=0,
        time_s=25.0,
        fields={"op": "update", "stage": "end"},
    )
    return files(
        rank(0, stacks.SEND_CHUNK),
        *_waiting(1),
        log_events=(SYNC, taken, LATER),
        environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    )


def duplicate_device__fires_nccl_warning() -> Evidence:
    said = log(
        "NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000",
        kind="nccl_duplicate_gpu",
        rank=0,
    )
    return files(rank(0, stacks.TRAINER_JOIN, stacks.TRAINER_JOIN), log_events=(said,))


def duplicate_device__silent_other_warning() -> Evidence:
    said = log("NCCL WARN Could not find NET plugin", kind="nccl_error", rank=0)
    return files(rank(0, stacks.TRAINER_JOIN, stacks.TRAINER_JOIN), log_events=(said,))


def resume_of_unreleased_memory__fires_key_error() -> Evidence:
    error = log(
        "KeyError: 'weights'",
        "engine0.log",
        9,
        "traceback",
        engine=0,
        time_s=30.0,
        fields={
            "exception": "KeyError",
            "message": "'weights'",
            "frames": "resume_memory_occupation (sglang/srt/managers/x.py:1)",
        },
    )
    return files(rank(0, stacks.RAY_GET), *_waiting(1), log_events=(SYNC, error, LATER))


def resume_of_unreleased_memory__silent_other_key() -> Evidence:
    error = log(
        "KeyError: 'lm_head'",
        "engine0.log",
        9,
        "traceback",
        engine=0,
        time_s=30.0,
        fields={
            "exception": "KeyError",
            "message": "'lm_head'",
            "frames": "load_weights (sglang/srt/models/x.py:1)",
        },
    )
    return files(rank(0, stacks.RAY_GET), *_waiting(1), log_events=(SYNC, error, LATER))


def file_descriptors_exhausted__fires_emfile_first() -> Evidence:
    error = _error("[Errno 24] Too many open files", "OSError", rank=3)
    reset = log(
        "Connection reset by peer [10.0.0.4]", line=7, kind="gloo_peer_closed", time_s=31.0, rank=0
    )
    return files(*_waiting(0, 1, 2), log_events=(SYNC, error, reset))


def file_descriptors_exhausted__silent_reset_alone() -> Evidence:
    reset = log(
        "Connection reset by peer [10.0.0.4]", line=7, kind="gloo_peer_closed", time_s=31.0, rank=0
    )
    return files(*_waiting(0, 1, 2), log_events=(SYNC, reset))


def shared_memory_too_small__fires_full() -> Evidence:
    error = _error("No space left on device: '/dev/shm/nccl-x'", "OSError", engine=0)
    return files(rank(0, stacks.RAY_GET), log_events=(SYNC, error, LATER))


def shared_memory_too_small__silent_note_of_ray() -> Evidence:
    note = log(
        "The object store is using /tmp because /dev/shm has only 67108864 bytes available.",
        kind="small_dev_shm",
    )
    return files(rank(0, stacks.RAY_GET), log_events=(note, SYNC, LATER))


def store_owner_left__fires_echo_and_dead_rank_zero() -> Evidence:
    echo = log(
        'Failed to check the "should dump" flag on TCPStore, with error: Broken pipe',
        line=4,
        kind="store_owner_gone",
        rank=2,
        time_s=50.0,
    )
    return files(
        rank(0, status="dead", status_detail="exit status 1"),
        *_waiting(1, 2),
        log_events=(SYNC, echo),
    )


def store_owner_left__silent_rank_zero_lives() -> Evidence:
    echo = log(
        'Failed to check the "should dump" flag on TCPStore, with error: Broken pipe',
        line=4,
        kind="store_owner_gone",
        rank=2,
        time_s=50.0,
    )
    return files(*_waiting(0, 1, 2), log_events=(SYNC, echo))


def member_killed__fires_signal() -> Evidence:
    gone = rank(
        1, status="dead", status_detail="killed by signal 9", position=position("read_weights")
    )
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1, 2))
    return live(
        rank(0, stacks.GLOO_BARRIER, position=where),
        gone,
        rank(2, stacks.GLOO_BARRIER, position=where),
    )


def member_killed__silent_stopped() -> Evidence:
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1))
    return live(
        rank(0, stacks.GLOO_BARRIER, position=where),
        rank(1, stacks.HASH_READ, status="stopped", position=position("read_weights")),
    )


def cold_compilation__fires_other_kernels() -> Evidence:
    first = ActivitySample(taken_at_s=100.0, cpu_s=412.0)
    then = ActivitySample(taken_at_s=220.0, cpu_s=533.0)
    compiling = rank(
        0,
        sample(stacks.TRITON_LLIR, active=True),
        sample(stacks.TRITON_CUBIN, active=True),
        activity=(first, then),
    )
    return files(compiling, rank(1, stacks.RECV_FORWARD, stacks.RECV_FORWARD))


def cold_compilation__silent_waits_for_the_cache_lock() -> Evidence:
    baton = (
        "wait (torch/utils/file_baton.py:49)\nload"
        " (torch/utils/cpp_extension.py:1300)\nbuild (my/ops.py:9)"
    )
    return files(rank(0, baton, baton), rank(1, stacks.RECV_FORWARD, stacks.RECV_FORWARD))


def _read(first: int, then: int, state: str = "D") -> tuple[ActivitySample, ...]:
    thread = (ThreadActivity(1002, "python", state, "folio_wait_bit_common"),)
    return (
        ActivitySample(100.0, read_bytes=first, threads=thread),
        ActivitySample(160.0, read_bytes=then, threads=thread),
    )


def storage_slow__fires_network_mount() -> Evidence:
    mount = log("nas02:/export on /nfs type nfs4 (rw)", "mount.txt", 1, "nfs_mount")
    reader = rank(
        2,
        stacks.CHECKPOINT_READ,
        activity=_read(19_000_000_000, 19_900_000_000),
        status="uninterruptible",
    )
    return files(*(rank(r, stacks.CHECKPOINT_BARRIER) for r in (0, 1)), reader, log_events=(mount,))


def storage_slow__silent_paused_copy() -> Evidence:
    asleep = log("Timer sleep end (elapsed: 7.1s)", kind="trainer_phase", time_s=10.0, rank=0)
    return files(
        rank(0, stacks.SAVE_GATHER),
        rank(1, stacks.SAVE_COPY, stacks.SAVE_COPY),
        log_events=(asleep,),
    )


def slow_not_hung__fires_other_frames() -> Evidence:
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1))
    first = "cast_rows (my/pack.py:20)\npack (my/pack.py:5)\nsync (my/sync.py:2)"
    then = "copy_rows (my/pack.py:31)\npack (my/pack.py:6)\nsync (my/sync.py:2)"
    return live(
        rank(0, stacks.GLOO_BARRIER, position=where),
        rank(1, first, then, position=position("send_chunk")),
    )


def slow_not_hung__silent_polling_loop() -> Evidence:
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1))
    first = "sync_wait_for_path (my/path.py:20)\nsync (my/sync.py:2)"
    then = "sync_wait_for_path (my/path.py:23)\nsync (my/sync.py:2)"
    return live(
        rank(0, stacks.GLOO_BARRIER, position=where),
        rank(1, first, then, position=position("wait")),
    )
