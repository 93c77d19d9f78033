"""TRL: GRPO, RLOO, online DPO and async GRPO with vLLM.

Source:
    huggingface/trl at f2cd57710 and v0.27.0, the modules named here.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed, phases, section

FRAMEWORK = "TRL"
_VLLM = "trl.generation.vllm_generation"
_CLIENT = "trl.generation.vllm_client"
_ASYNC = "trl.experimental.async_grpo"


def _built(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    active_flags.record_tree(getattr(args[0], "args", None), type(args[0]).__name__)


HOOKS = (
    observed("trl.trainer.grpo_trainer", "GRPOTrainer.__init__", _built),
    observed("trl.trainer.rloo_trainer", "RLOOTrainer.__init__", _built),
    observed(f"{_ASYNC}.async_grpo_trainer", "AsyncGRPOTrainer.__init__", _built),
    section(_VLLM, "VLLMGeneration.sync_weights"),
    section("trl.trainer.grpo_trainer", "GRPOTrainer._move_model_to_vllm", is_optional=True),
    section("trl.trainer.rloo_trainer", "RLOOTrainer._move_model_to_vllm", is_optional=True),
    section(
        "trl.experimental.online_dpo.online_dpo_trainer",
        "OnlineDPOTrainer._move_model_to_vllm",
        is_optional=True,
    ),
    section(f"{_ASYNC}.async_grpo_trainer", "AsyncGRPOTrainer._sync_weight"),
    *phases(_VLLM, "connect", "VLLMGeneration._init_vllm"),
    *phases(_VLLM, "send_chunk", "VLLMGeneration._push_param_to_vllm"),
    *phases(_CLIENT, "send_chunk", "VLLMClient.update_named_param"),
    *phases(_CLIENT, "connect", "VLLMClient.init_communicator"),
    *phases(_CLIENT, "flush_cache", "VLLMClient.reset_prefix_cache"),
    *phases("trl.extras.vllm_client", "send_chunk", "VLLMClient.update_named_param"),
    *phases(f"{_ASYNC}.weight_transfer", "connect", "WeightTransferClient.init_weight_transfer"),
    *phases(
        f"{_ASYNC}.weight_transfer",
        "pause_generation",
        "WeightTransferClient.pause",
        then="barrier:entry",
    ),
    *phases(
        f"{_ASYNC}.weight_transfer",
        "send_chunk",
        "WeightTransferClient.send_weights",
        then="barrier:exit",
    ),
    *phases(f"{_ASYNC}.weight_transfer", "resume_generation", "WeightTransferClient.resume"),
)
