"""Cases of weights and memory: what is read while it is not there."""

from __future__ import annotations

from tests.rules import stacks
from tests.rules.building import blocked, engine, files, flags, live, log, position, rank, sample
from watchdog.evidence import Evidence, MemoryRegion, Process

_NO_COPY = (
    MemoryRegion("param_buffer", "paused_without_copy", 4096, 2, ("layers.0.a", "layers.0.b")),
)
_BACKED_UP = (MemoryRegion("param_buffer", "backed_up", 4096, 2),)
_LORA = flags(lora_rank=16, colocate=True, offload_train=True, disable_weights_backuper=True)
_ASLEEP = log("Timer sleep end (elapsed: 7.1s)", kind="trainer_phase", time_s=10.0, rank=0)
_SYNC = log("Timer update_weights start", line=2, kind="trainer_phase", time_s=20.0, rank=0)
_LATE = log("Timed out waiting 1800000ms for recv operation", line=9, time_s=1900.0, rank=0)


def _in_barrier(*ranks: int) -> list:
    where = position("barrier:exit", "barrier", "gloo", 3, (0, 1, 2, 3))
    return [rank(r, stacks.GLOO_BARRIER, position=where) for r in ranks]


def missing_backup_lora_colocate__fires_ledger_and_page_fault() -> Evidence:
    reader = rank(
        2,
        stacks.HASH_READ,
        stacks.HASH_READ,
        position=position("read_weights"),
        activity=(blocked(1002, "handle_userfault"),),
        memory=_NO_COPY,
    )
    return live(*_in_barrier(0, 1), reader, *_in_barrier(3))


def missing_backup_lora_colocate__fires_frames_and_flags() -> Evidence:
    others = [rank(r, stacks.GLOO_BARRIER) for r in (0, 1, 3)]
    reader = rank(2, stacks.HASH_READ, stacks.HASH_READ)
    return files(*others[:2], reader, others[2], flags=_LORA, log_events=(_ASLEEP, _SYNC, _LATE))


def missing_backup_lora_colocate__silent_flags_but_adapter_unload() -> Evidence:
    return files(
        *[rank(r, stacks.GLOO_BARRIER) for r in (0, 1, 3)],
        rank(2, stacks.SEND_CHUNK),
        flags=_LORA,
        log_events=(
            log("Timer update_weights end (elapsed: 7.9s)", time_s=10.0, rank=0),
            _SYNC,
            log(
                "Start unload Lora adapter. Lora name=a",
                "engine0.log",
                1,
                "engine_control",
                engine=0,
                fields={"op": "unload_lora", "stage": "begin"},
            ),
        ),
    )


def missing_backup_lora_colocate__silent_copy_exists() -> Evidence:
    slow = rank(
        2, stacks.HASH_READ, stacks.HASH_READ, position=position("read_weights"), memory=_BACKED_UP
    )
    return live(*_in_barrier(0, 1, 3), slow)


def paused_memory_read__fires_page_fault() -> Evidence:
    read = "serialize (miles/serialize.py:12)\nsend (miles/send.py:30)"
    reader = rank(
        1,
        sample(read, owns_gil=True),
        position=position("read_weights", heartbeat=7.0),
        activity=(blocked(1001, "handle_userfault"),),
    )
    return live(*_in_barrier(0), reader, *_in_barrier(2))


def _blocked_reader(channel: str, **more: object) -> Process:
    read = "read_weights (my/sync.py:22)\nmain (my/sync.py:40)"
    return rank(
        1,
        read,
        read,
        position=position("read_weights"),
        activity=(blocked(1001, channel),),
        **more,
    )


def paused_memory_read__fires_only_a_name_says_that_memory_is_paused() -> Evidence:
    return live(*_in_barrier(0), _blocked_reader("__do_sys_pause"), *_in_barrier(2))


def paused_memory_read__fires_flags_without_backup_but_a_copy() -> Evidence:
    reader = _blocked_reader("handle_userfault", memory=_BACKED_UP)
    return live(*_in_barrier(0), reader, *_in_barrier(2), flags=_LORA)


def missing_backup_lora_colocate__fires_blocked_read_without_ledger() -> Evidence:
    return live(*_in_barrier(0), _blocked_reader("handle_userfault"), *_in_barrier(2), flags=_LORA)


def paused_memory_read__silent_flags_leave_no_copy() -> Evidence:
    return missing_backup_lora_colocate__fires_blocked_read_without_ledger()


def paused_memory_read__fires_sleeping_trainer() -> Evidence:
    reader = rank(1, stacks.HASH_READ, stacks.HASH_READ)
    others = [rank(r, stacks.GLOO_BARRIER) for r in (0, 2)]
    return files(
        *others, reader, flags=flags(offload_train=True), log_events=(_ASLEEP, _SYNC, _LATE)
    )


def paused_memory_read__silent_awake_and_moving() -> Evidence:
    first = "copy_layer_3 (miles/read.py:40)\nnamed_params_and_buffers (miles/common.py:20)"
    then = "copy_layer_9 (miles/read.py:44)\nnamed_params_and_buffers (miles/common.py:20)"
    return live(*_in_barrier(0, 2), rank(1, first, then, position=position("read_weights")))


def save_while_offloaded__fires_two_samples() -> Evidence:
    return files(
        rank(0, stacks.SAVE_GATHER),
        rank(1, stacks.SAVE_COPY, stacks.SAVE_COPY),
        log_events=(_ASLEEP,),
    )


def save_while_offloaded__silent_awake() -> Evidence:
    awake = log("Timer wake_up end (elapsed: 2.0s)", line=2, time_s=12.0, rank=0)
    return files(
        rank(0, stacks.SAVE_GATHER),
        rank(1, stacks.SAVE_COPY),
        log_events=(_ASLEEP, awake, _LATE),
    )


def groups_rebuilt_in_paused_region__fires_error_in_gather() -> Evidence:
    error = log(
        "torch.AcceleratorError: CUDA error: invalid argument",
        line=4,
        kind="traceback",
        time_s=21.0,
        rank=0,
        fields={
            "exception": "AcceleratorError",
            "frames": "all_gather_object (d.py:1)\nconnect (c.py:2)",
        },
    )
    rebuilt = log("Reloading 9 process groups in pid 7", line=3, time_s=20.5, rank=0)
    return files(rank(1, stacks.GLOO_BARRIER), log_events=(_ASLEEP, _SYNC, rebuilt, error))


def groups_rebuilt_in_paused_region__silent_error_in_weight_read() -> Evidence:
    error = log(
        "torch.AcceleratorError: CUDA error: invalid argument",
        line=4,
        kind="traceback",
        time_s=21.0,
        rank=0,
        fields={
            "exception": "AcceleratorError",
            "frames": "_compute_hash_tensor"
            " (miles/utils/tensor_backper.py:118)\nupdate_weights (c.py:2)",
        },
    )
    return files(rank(1, stacks.GLOO_BARRIER), log_events=(_ASLEEP, _SYNC, error), flags=_LORA)


def _engine_log(*entries: tuple[str, str, str], running: int = 0) -> tuple:
    events = [
        log(
            "Running: reqs",
            "engine0.log",
            1,
            "engine_load",
            engine=0,
            fields={"running": str(running), "throughput": "10.0"},
        )
    ]
    for line, (op, stage, text) in enumerate(entries, start=2):
        kind = "engine_control" if op else "line"
        events.append(
            log(
                text,
                "engine0.log",
                line,
                kind,
                engine=0,
                fields={"op": op, "stage": stage} if op else {},
            )
        )
    return tuple(events)


def engine_step_during_sleep__fires_running_requests() -> Evidence:
    history = _engine_log(("sleep", "end", '"POST /sleep?level=1 HTTP/1.1" 200'), running=4)
    workers = [engine(0, stacks.VLLM_STEP, worker=w) for w in (0, 1)]
    return files(rank(0, stacks.SEND_CHUNK), *workers, log_events=history)


def engine_step_during_sleep__silent_drained_and_awake() -> Evidence:
    history = _engine_log(
        ("pause", "end", '"POST /pause HTTP/1.1" 200'),
        ("sleep", "end", '"POST /sleep?level=1 HTTP/1.1" 200'),
        ("wake", "end", '"POST /wake_up HTTP/1.1" 200'),
    )
    workers = [engine(0, stacks.VLLM_STEP, worker=w) for w in (0, 1)]
    return files(rank(0, stacks.SEND_CHUNK), *workers, log_events=history)


def incomplete_wake__fires_weights_only() -> Evidence:
    history = _engine_log(
        ("sleep", "end", '"POST /sleep HTTP/1.1" 200'),
        ("wake", "end", "\"POST /wake_up?tags=['weights'] HTTP/1.1\" 200"),
        ("", "", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"),
    )
    return files(rank(0, stacks.SEND_CHUNK), log_events=history)


def incomplete_wake__silent_all_tags() -> Evidence:
    history = _engine_log(
        ("sleep", "end", '"POST /sleep HTTP/1.1" 200'),
        ("wake", "end", "\"POST /wake_up?tags=['weights','kv_cache'] HTTP/1.1\" 200"),
        ("", "", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"),
    )
    return files(rank(0, stacks.SEND_CHUNK), log_events=history)


def deep_sleep_with_adapters__fires_key_error() -> Evidence:
    history = _engine_log(
        ("sleep", "end", '"POST /sleep?level=2 HTTP/1.1" 200'),
        ("", "", "KeyError: 'model.layers.0.lora_a' in wake_up"),
    )
    return files(rank(0, stacks.SEND_CHUNK), log_events=history)


def deep_sleep_with_adapters__silent_level_one() -> Evidence:
    history = _engine_log(
        ("sleep", "end", '"POST /sleep?level=1 HTTP/1.1" 200'),
        ("", "", "KeyError: 'model.layers.0.lora_a' in wake_up"),
    )
    return files(rank(0, stacks.SEND_CHUNK), log_events=history)


def graph_pool_lost__fires_misaligned_address() -> Evidence:
    history = _engine_log(
        ("wake", "end", '"POST /resume_memory_occupation HTTP/1.1" 200'),
        ("", "", "torch.AcceleratorError: CUDA error: misaligned address"),
    )
    return files(
        rank(0, stacks.SEND_CHUNK),
        log_events=history,
        environment={"SGLANG_MEMORY_SAVER_CUDA_GRAPH": "1"},
    )


def graph_pool_lost__silent_pool_resident() -> Evidence:
    history = _engine_log(
        ("wake", "end", '"POST /resume_memory_occupation HTTP/1.1" 200'),
        ("", "", "torch.AcceleratorError: CUDA error: misaligned address"),
    )
    return files(rank(0, stacks.SEND_CHUNK), log_events=history)
