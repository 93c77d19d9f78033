"""Frames of work: weights, memory, compilers, training, engine steps, idle loops, the way out."""

from __future__ import annotations

from watchdog.waits.patterns import Pattern

WEIGHTS: tuple[Pattern, ...] = (
    Pattern("weight_read", r"\w+|<lambda>|<genexpr>|<listcomp>|<dictcomp>", r"tensor_backper\.py$"),
    Pattern(
        "weight_read",
        r"_compute_hash_\w+|weights_getter|_maybe_get_cpu_backup|named_params_and_buffers"
        r"|read_weights|read_weight\w*|preload_tensors|_read_tensor\w*|_tensor_checksum|checksum_of\w*"
        r"|_?gather_local_weights|(to|copy_to|stage_to)_(host|cpu)\w*|_param_to_bytes",
    ),
    Pattern(
        "memory_switch",
        r"pause|resume|_pause|_resume|sleep|wake_up|disable",
        r"torch_memory_saver|pausable_memory"
        r"|memory_saver|cumem\.py",
    ),
    Pattern(
        "memory_switch",
        r"(release|resume)_memory_occupation|offload_before_refit|offload_after_refit",
    ),
)

SLOW_WORK: tuple[Pattern, ...] = (
    Pattern(
        "slow_work",
        r"\w+",
        r"triton/(compiler|backends|runtime/(jit|autotuner|build|cache))",
        "compile",
    ),
    Pattern(
        "slow_work",
        r"make_(llir|cubin|ptx|ttir|ttgir)|_do_compile|compile_fx\w*|async_compile\w*",
        "",
        "compile",
    ),
    Pattern(
        "slow_work",
        r"\w+",
        r"torch/_(inductor|dynamo)/(?!compile_worker/subproc_pool|eval_frame)",
        "compile",
    ),
    Pattern(
        "slow_work",
        r"(load|_jit_compile|_write_ninja_file_and_build_library|verify_ninja_availability)",
        r"torch/utils/cpp_extension\.py$",
        "compile",
    ),
    Pattern(
        "slow_work",
        r"\w+",
        r"(deep_gemm|flashinfer)/(jit|compile)|tvm/|cutlass/|tilelang/",
        "compile",
    ),
    Pattern(
        "slow_work", r"capture\w*|_capture\w*", r"(cuda_graph|graph)_?\w*\.py$", "graph capture"
    ),
    Pattern(
        "slow_work", r"from_pretrained|get_tokenizer|load_tokenizer|_batch_encode\w*", "", "load"
    ),
    Pattern("slow_work", r"\w+", r"(^|/)(rich|tabulate)/", "printing"),
    Pattern(
        "slow_work",
        r"load_model|load_weights|initialize_model\w*",
        r"model_loader|loader\.py$",
        "load",
    ),
)

COMPUTE: tuple[Pattern, ...] = (
    Pattern("compute", r"_engine_run_backward|backward", r"torch/(autograd|_tensor)", "backward"),
    Pattern(
        "compute",
        r"forward|_call_impl|_wrapped_call_impl",
        r"(torch/nn/|modeling_|transformer)",
        "forward",
    ),
    Pattern(
        "compute",
        r"step|_single_tensor_\w+|_multi_tensor_\w+",
        r"torch/optim|optimizer",
        "optimizer step",
    ),
    Pattern(
        "compute",
        r"train_step|training_step|forward_backward\w*|compute_log_prob\w*",
        "",
        "training",
    ),
)

ENGINE: tuple[Pattern, ...] = (
    Pattern(
        "engine_step",
        r"_to_list|_bookkeeping_sync|sample_tokens|execute_model|forward_batch_generation"
        r"|run_batch|process_batch_result\w*|_process_engine_step",
    ),
    Pattern("engine_step", r"execute_dummy_batch|_dummy_run|coordinate_batch_across_dp"),
    Pattern(
        "engine_step",
        r"update_weights_from_(tensor|ipc|disk)|load_lora_adapter\w*|unload_lora_adapter\w*"
        r"|update_weight|update_named_param|_unwrap_tensor|rebuild_cuda_tensor",
    ),
    Pattern(
        "engine_step",
        r"generate_sequences|_req_level_generate_sequences|generate_rollout\w*",
        "",
        "generation",
    ),
)

IDLE: tuple[Pattern, ...] = (
    Pattern(
        "idle",
        r"acquire_read|dequeue",
        r"shm_broadcast\.py$",
        "message loop",
        under=r"worker_busy_loop",
    ),
    Pattern("idle", r"_process_input_queue", r"engine/core\.py$", "request queue"),
    Pattern("idle", r"recv_requests", "", "request queue"),
    Pattern("idle", r"main_loop", r"ray/_private/worker\.py$", "actor loop"),
    Pattern(
        "idle",
        r"serve|_serve|main_loop|serve_forever|handle_request|run_server",
        r"uvicorn|socketserver|http/server"
        r"|api_server",
        "server loop",
    ),
    Pattern("idle", r"event_loop_\w+|run_busy_loop|worker_busy_loop", "", "scheduler loop"),
    Pattern(
        "idle",
        r"run|_worker",
        r"(concurrent/futures/thread|multiprocessing/pool)\.py$",
        "pool thread",
    ),
)

CLEANUP: tuple[Pattern, ...] = (
    Pattern("cleanup", r"destroy_process_group|_shutdown_backend", r"distributed_c10d\.py$"),
    Pattern(
        "cleanup", r"_shutdown|_python_exit|_run_exitfuncs|_exit_function", "", "interpreter exit"
    ),
    Pattern(
        "cleanup",
        r"excepthook|print_exception|handle_exception|_handle_error|on_error|cleanup|_cleanup|tear_?down"
        r"|shut_?down|__exit__|abort",
    ),
)

DEVICE: tuple[Pattern, ...] = (
    Pattern("device_sync", r"synchronize", r"torch/cuda/"),
    Pattern("device_sync", r"empty_cache", r"torch/cuda/memory\.py$"),
    Pattern("device_sync", r"cudaFree\w*|cuMemFree\w*", operation="cudaFree"),
    Pattern(
        "device_sync",
        r"(cuda|cu)(Stream|Event|Ctx|Device)Synchronize|at::native::_local_scalar_dense_cuda"
        r"|cudaMemcpy\w*|cuMemcpy\w*",
    ),
)

SLEEP: tuple[Pattern, ...] = (
    Pattern("sleep", r"clock_nanosleep\w*|__?nanosleep|time_sleep|pysleep|usleep", "", "sleep"),
)
