"""verl: worker side only; `@auto_await` looks at the flags of its caller's frame.

Source:
    verl-project/verl at 1dda039b9 and volcengine/verl at b178a3cd5, the modules named here.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed, phases, section

FRAMEWORK = "verl"
_ROLLOUT = "verl.workers.rollout"


def _built(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    active_flags.record_tree(args[1] if len(args) > 1 else kwargs.get("config"), "worker config")


HOOKS = (
    observed("verl.workers.engine_workers", "ActorRolloutRefWorker.__init__", _built),
    section("verl.workers.engine_workers", "ActorRolloutRefWorker.update_weights"),
    section("verl.workers.fsdp_workers", "ActorRolloutRefWorker.rollout_mode", is_optional=True),
    section(
        "verl.workers.megatron_workers", "ActorRolloutRefWorker.rollout_mode", is_optional=True
    ),
    section(
        "verl.experimental.fully_async_policy.fsdp_workers",
        "DetachNcclSync.sync_rollout_weights",
        is_optional=True,
    ),
    *phases(
        "verl.workers.engine.fsdp.transformer_impl",
        "read_weights",
        "FSDPEngine.get_per_tensor_param",
    ),
    *phases(
        "verl.workers.engine.megatron.transformer_impl",
        "read_weights",
        "MegatronEngine.get_per_tensor_param",
    ),
    *phases(f"{_ROLLOUT}.vllm_rollout.vllm_rollout", "send_chunk", "ServerAdapter.update_weights"),
    *phases(f"{_ROLLOUT}.vllm_rollout.vllm_rollout", "wake_engine", "ServerAdapter.resume"),
    *phases(f"{_ROLLOUT}.vllm_rollout.vllm_rollout", "sleep_engine", "ServerAdapter.release"),
    *phases(
        f"{_ROLLOUT}.vllm_rollout.bucketed_weight_transfer",
        "send_chunk",
        "BucketedWeightSender.async_send_weights",
    ),
    *phases(
        f"{_ROLLOUT}.sglang_rollout.sglang_rollout", "send_chunk", "ServerAdapter.update_weights"
    ),
    *phases(f"{_ROLLOUT}.sglang_rollout.sglang_rollout", "wake_engine", "ServerAdapter.resume"),
    *phases(f"{_ROLLOUT}.sglang_rollout.sglang_rollout", "sleep_engine", "ServerAdapter.release"),
    *phases(
        "verl.checkpoint_engine.nccl_checkpoint_engine",
        "connect",
        "NCCLCheckpointEngine.init_process_group",
    ),
    *phases(
        "verl.checkpoint_engine.nccl_checkpoint_engine",
        "send_chunk",
        "NCCLCheckpointEngine.send_weights",
    ),
)
