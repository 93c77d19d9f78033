"""Frames of waits for another process: RPC, queues, files, locks."""

from __future__ import annotations

from watchdog.waits.patterns import Pattern

_SERVING = r"process_(input|output)_sockets|recv_requests|event_loop|busy_loop"

RPC: tuple[Pattern, ...] = (
    Pattern("rpc", r"get|get_objects|wait", r"ray/_private/worker\.py$", "ray.get"),
    Pattern("rpc", r"_read_status|getresponse|begin", r"http/client\.py$", "http"),
    Pattern(
        "rpc",
        r"request|send|post|get|urlopen",
        r"(requests|httpx|httpcore|urllib3|urllib)/",
        "http",
    ),
    Pattern("rpc", r"_request|request", r"aiohttp/client\.py$", "http"),
    Pattern("rpc", r"(recv|send|poll)\w*", r"(^|/)zmq/", "zmq", not_under=_SERVING),
    Pattern("rpc", r"get_response|wait_for_response", r"multiproc_executor\.py$", "worker answer"),
    Pattern("rpc", r"_blocking|_end_unary_response_blocking", r"grpc/", "grpc"),
    Pattern("rpc", r"wait|rollout_batch|prepare_batch", r"workflow_executor\.py$", "rollouts"),
    Pattern(
        "rpc",
        r"flush_cache|pause_generation|continue_generation|resume_generation|get_weight_version"
        r"|(un)?load_lora_adapter\w*|(release|resume)_memory_occupation",
        not_under=r"sglang/srt|vllm/v1|scheduler|do_POST|do_GET|tokenizer_manager",
    ),
    Pattern("rpc", r"recv|recv_bytes|_recv|poll", r"multiprocessing/connection\.py$", "pipe"),
)

LOCKS: tuple[Pattern, ...] = (
    Pattern("lock", r"acquire|_acquire", r"(^|/)filelock/", "file lock"),
    Pattern("lock", r"acquire|_acquire", r"_api\.py$", "file lock", under=r"filelock"),
    Pattern("lock", r"wait", r"file_baton\.py$", "file lock"),
    Pattern("lock", r"acquire|__enter__", r"(threading|asyncio/locks|synchronize)\.py$", "lock"),
    Pattern(
        "lock",
        r"wait_for_(zero|unload)|wait_for_no_readers|(acquire|get)_(writer|reader|write|read)_?lock|"
        r"(writer|reader)_lock",
    ),
    Pattern("lock", r"(acquire|wait_for|poll|take|grab)\w*_lock|_lock_and_\w+"),
)

NATIVE_LOCKS: tuple[Pattern, ...] = (
    Pattern(
        "lock",
        r"PyThread_acquire_lock\w*|lock_PyThread_acquire_lock|acquire_timed|rlock_acquire"
        r"|_PyMutex_LockTimed|(__GI_)?_*lll_lock_wait\w*|lock_acquire\w*|_multiprocessing_SemLock_acquire\w*",
        operation="lock",
    ),
)

FILES: tuple[Pattern, ...] = (
    Pattern(
        "file_wait",
        r"(sync_|async_|_)?wait_for_(path|file|marker|nccl_ready|ready_file|checkpoint)\w*",
    ),
    Pattern("file_wait", r"wait_for_\w*(path|file|marker|ready)\w*"),
    Pattern("file_io", r"\w+", r"torch/distributed/checkpoint/filesystem\.py$"),
    Pattern(
        "file_io",
        r"read_data|write_data|_write_item|_load_tensor|save_file|load_file|safe_open|fsync",
    ),
    Pattern(
        "file_io",
        r"load|save|_save|_legacy_save|_load|read_bytes|write_record|get_record|persistent_load",
        r"torch/serialization\.py$",
    ),
    Pattern(
        "file_io",
        r"(read|write|open|copyfile\w*|copytree|fsync)\w*",
        r"(pathlib|shutil|io|tarfile|zipfile)\.py$",
    ),
    Pattern(
        "file_io", r"_?(write|read|load|flush|fsync|copy)_(checkpoint_)?(shard|file|chunk|disk)\w*"
    ),
)

DATA: tuple[Pattern, ...] = (
    Pattern(
        "queue",
        r"_try_get_data|_get_data|_try_put_index",
        r"torch/utils/data/dataloader\.py$|stateful_dataloader\.py$",
        "data loader",
    ),
)

PROMPTS: tuple[Pattern, ...] = (
    Pattern("prompt", r"_?cmdloop|interaction|user_line", r"(^|/)(pdb|cmd|bdb)\.py$", "debugger"),
    Pattern("prompt", r"\w+", r"(^|/)(ipdb|pudb|remote_pdb|IPython/terminal)/", "debugger"),
    Pattern("prompt", r"do_wait_suspend|wait_for_client", r"pydevd|debugpy", "debugger"),
    Pattern("prompt", r"interact|raw_input", r"(^|/)code\.py$", "interpreter"),
)

QUEUES: tuple[Pattern, ...] = (
    Pattern("queue", r"get|put|join", r"(^|/)queue\.py$"),
    Pattern("queue", r"get|put", r"multiprocessing/queues\.py$"),
    Pattern("queue", r"join|_wait_for_tstate_lock", r"threading\.py$", "thread.join"),
    Pattern("queue", r"result|wait|as_completed", r"concurrent/futures", "future"),
    Pattern("queue", r"wait", r"threading\.py$", "event"),
    Pattern("await", r"run_until_complete|run|run_forever", r"asyncio/", "await"),
    Pattern(
        "queue", r"wait|_wait|_try_wait|communicate|_communicate", r"subprocess\.py$", "subprocess"
    ),
    Pattern(
        "queue", r"wait|join", r"multiprocessing/(process|popen_\w+|pool)\.py$", "child process"
    ),
)
