"""SkyRL: trainers on FSDP or Megatron, vLLM engines behind HTTP.

Source:
    NovaSky-AI/SkyRL at a9564572e, the modules named here.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed, phases, section

FRAMEWORK = "SkyRL"
_BACKEND = "skyrl.backends.skyrl_train"
_FSDP = f"{_BACKEND}.workers.fsdp.fsdp_worker"
_MEGATRON = f"{_BACKEND}.workers.megatron.megatron_worker"
_SYNC = f"{_BACKEND}.weight_sync"
_CLIENT = f"{_BACKEND}.inference_servers.remote_inference_client"


def _validated(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    active_flags.record_tree(args[0] if args else kwargs.get("cfg"), "validate_cfg")


HOOKS = (
    observed("skyrl.train.utils.utils", "validate_cfg", _validated),
    section(_FSDP, "FSDPPolicyWorkerBase.broadcast_to_inference_engines"),
    section(_MEGATRON, "MegatronPolicyWorkerBase.broadcast_to_inference_engines"),
    *phases(_FSDP, "read_weights", "FSDPWeightExtractor.extract_weights"),
    *phases(_MEGATRON, "read_weights", "MegatronWeightExtractor.extract_weights"),
    *phases(_FSDP, "send_lora", "FSDPPolicyWorkerBase._save_lora_adapters_and_sync"),
    *phases(f"{_BACKEND}.workers.worker", "connect", "Worker.init_weight_sync_state"),
    *phases(
        f"{_SYNC}.broadcast_strategy",
        "send_chunk",
        "BroadcastWeightTransferSender.send_chunks",
        then="barrier:exit",
    ),
    *phases(
        f"{_SYNC}.cuda_ipc_strategy",
        "send_chunk",
        "CudaIpcWeightTransferSender.send_chunks",
        then="barrier:exit",
    ),
    *phases(
        f"{_SYNC}.delta_strategy",
        "send_chunk",
        "DeltaWeightTransferSender.send_chunks",
        then="barrier:exit",
    ),
    *phases(_CLIENT, "pause_generation", "RemoteInferenceClient.pause_generation"),
    *phases(_CLIENT, "resume_generation", "RemoteInferenceClient.resume_generation"),
    *phases(
        _CLIENT,
        "engine_update",
        "RemoteInferenceClient.start_weight_update",
        "RemoteInferenceClient.update_weights_ipc",
        "RemoteInferenceClient.finish_weight_update",
    ),
)
