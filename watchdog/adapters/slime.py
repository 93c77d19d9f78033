"""slime: the same family as miles; the model is synced with the WORLD group destroyed.

Source:
    THUDM/slime at 624b824a8, the modules named here.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed, phases, section

FRAMEWORK = "slime"
_SYNC = "slime.backends.megatron_utils.update_weight"
_COLOCATED = f"{_SYNC}.update_weight_from_tensor"
_DISTRIBUTED = f"{_SYNC}.update_weight_from_distributed"
_ENGINE = "slime.backends.sglang_utils.sglang_engine"


def _parsed(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    from watchdog.recording import active_flags

    active_flags.record(result, "slime.utils.arguments.parse_args")


def _initialised(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    given = args[1] if len(args) > 1 else kwargs.get("args")
    active_flags.record_if_none(given, "MegatronTrainRayActor.init")


HOOKS = (
    observed("slime.utils.arguments", "parse_args", _parsed),
    observed("slime.backends.megatron_utils.actor", "MegatronTrainRayActor.init", _initialised),
    section("slime.backends.megatron_utils.actor", "MegatronTrainRayActor.update_weights"),
    *phases(
        "slime.utils.reloadable_process_group",
        "process_groups",
        "reload_process_groups",
        "destroy_process_groups",
    ),
    *phases(_COLOCATED, "connect", "UpdateWeightFromTensor.connect_rollout_engines"),
    *phases(
        _DISTRIBUTED,
        "connect",
        "UpdateWeightFromDistributed.disconnect_rollout_engines",
        "connect_rollout_engines_from_distributed",
    ),
    *phases(_COLOCATED, "barrier:entry", "UpdateWeightFromTensor.update_weights"),
    *phases(_DISTRIBUTED, "barrier:entry", "UpdateWeightFromDistributed.update_weights"),
    *phases(
        f"{_SYNC}.update_weight_from_disk", "write_weights", "UpdateWeightFromDisk.update_weights"
    ),
    *phases(
        f"{_SYNC}.update_weight_from_disk_delta",
        "write_weights",
        "UpdateWeightFromDiskDelta.update_weights",
    ),
    *phases(
        "slime.utils.tensor_backper",
        "read_weights",
        "_TensorBackuperNormal.get",
        then="send_chunk",
    ),
    *phases(
        f"{_SYNC}.common",
        "read_weights",
        "named_params_and_buffers",
        "_maybe_get_cpu_backup",
    ),
    *phases(
        f"{_SYNC}.hf_weight_iterator_direct",
        "read_weights",
        "HfWeightIteratorDirect.get_hf_weight_chunks",
        "_get_megatron_full_params",
    ),
    *phases(
        _COLOCATED,
        "send_chunk",
        "UpdateWeightFromTensor._send_hf_params",
        "_send_to_colocated_engine",
        then="barrier:exit",
    ),
    *phases(_COLOCATED, "send_experts", "UpdateWeightFromTensor._update_expert_weights"),
    *phases(
        _DISTRIBUTED,
        "send_chunk",
        "UpdateWeightFromDistributed._send_weights",
        "UpdateWeightFromDistributed._update_bucket_weights_from_distributed",
        "update_weights_from_distributed",
        then="barrier:exit",
    ),
    *phases(
        _ENGINE, "pause_generation", "SGLangEngine.pause_generation", "SGLangEngine.flush_cache"
    ),
    *phases(_ENGINE, "resume_generation", "SGLangEngine.continue_generation"),
)
