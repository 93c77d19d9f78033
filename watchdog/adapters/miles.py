"""miles: trainers on Megatron or FSDP, SGLang engines. Also the `miles` beside this package.

Names of two upstream versions stand side by side (2026-08-04 with `--disable-weights-backuper`,
2026-08-21 without it); what a version lacks is left out.

Source:
    radixark/miles at 754615408 and 31f1ca961, the modules named here.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed, phases, section

FRAMEWORK = "miles"

_SYNC = "miles.backends.megatron_utils.update_weight"
_COLOCATED = f"{_SYNC}.update_weight_from_tensor"
_DISTRIBUTED = f"{_SYNC}.update_weight_from_distributed"
_ENGINE = "miles.backends.sglang_utils.sglang_engine"


def _validated(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    active_flags.record(args[0] if args else kwargs["args"], "miles_validate_args")


def _initialised(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    # Ray actors get the arguments of the driver, which validated them elsewhere.
    given = args[1] if len(args) > 1 else kwargs.get("args")
    active_flags.record_if_none(given, "MegatronTrainRayActor.init")


def _provided(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    from watchdog.recording import active_flags

    active_flags.defaults_from(result)


HOOKS = (
    observed("miles.utils.arguments", "get_miles_extra_args_provider", _provided),
    observed("miles.utils.arguments", "miles_validate_args", _validated),
    observed("miles.backends.megatron_utils.actor", "MegatronTrainRayActor.init", _initialised),
    section("miles.backends.megatron_utils.actor", "MegatronTrainRayActor.update_weights"),
    section("miles.backends.fsdp_utils.actor", "FSDPTrainRayActor.update_weights"),
    section(
        "miles.backends.experimental.fsdp_utils.actor",
        "FSDPTrainRayActor.update_weights",
    ),
    *phases(
        "miles.utils.reloadable_process_group",
        "process_groups",
        "reload_process_groups",
        "destroy_process_groups",
    ),
    *phases("miles.utils.residency", "residency_audit", "audit_weights"),
    *phases(_COLOCATED, "connect", "UpdateWeightFromTensor.connect_rollout_engines"),
    *phases(
        f"{_DISTRIBUTED}.broadcast",
        "connect",
        "UpdateWeightFromDistributed.connect_rollout_engines",
        "connect_rollout_engines_from_distributed",
        "disconnect_rollout_engines_from_distributed",
    ),
    # Until somebody reads a weight, whoever is inside waits for the others at the entry.
    *phases(_COLOCATED, "barrier:entry", "UpdateWeightFromTensor.update_weights"),
    *phases(
        f"{_DISTRIBUTED}.mixin", "barrier:entry", "DistBucketedWeightUpdateMixin.update_weights"
    ),
    *phases(f"{_DISTRIBUTED}.delta", "barrier:entry", "UpdateWeightFromDiskDelta.update_weights"),
    *phases(
        f"{_DISTRIBUTED}.mixin",
        "pause_generation",
        "DistBucketedWeightUpdateMixin._pause_and_prepare_engines",
    ),
    *phases(f"{_SYNC}.engine_control", "pause_generation", "pause_engines"),
    *phases(
        _ENGINE,
        "pause_generation",
        "SGLangEngine.pause_generation",
        "SGLangEngine.flush_cache",
    ),
    *phases(
        "miles.utils.tensor_backper",
        "read_weights",
        "_TensorBackuperNormal.get",
        "_TensorBackuperNoop.get",
        "_TensorBackuperMainCast.get",
        then="send_chunk",
    ),
    *phases(f"{_SYNC}.common", "read_weights", "named_params_and_buffers"),
    *phases(
        f"{_SYNC}.hf_weight_iterator_direct",
        "read_weights",
        "HfWeightIteratorDirect.get_hf_weight_chunks",
        "_get_megatron_full_params",
    ),
    *phases(
        f"{_SYNC}.hf_weight_iterator_bridge",
        "read_weights",
        "HfWeightIteratorBridge.get_hf_weight_chunks",
    ),
    *phases(
        f"{_DISTRIBUTED}.mixin",
        "read_and_send",
        "DistBucketedWeightUpdateMixin._gather_and_update_non_expert_weights",
        "DistBucketedWeightUpdateMixin._gather_and_update_expert_weights",
        "DistBucketedWeightUpdateMixin._update_lora_weights",
        then="barrier:exit",
    ),
    *phases(
        _COLOCATED,
        "send_chunk",
        "UpdateWeightFromTensor._send_base_params",
        "UpdateWeightFromTensor._send_lora_params",
        then="barrier:exit",
    ),
    *phases(
        f"{_DISTRIBUTED}.broadcast",
        "send_chunk",
        "UpdateWeightFromDistributed._update_weight_implementation",
        "update_weights_from_distributed",
    ),
    *phases(f"{_DISTRIBUTED}.p2p", "send_chunk", "UpdateWeightP2P._update_weight_implementation"),
    *phases(
        f"{_DISTRIBUTED}.p2p_transfer_utils", "wait_transfers", "P2PTransferManager.wait_transfers"
    ),
    *phases(
        f"{_DISTRIBUTED}.mixin",
        "resume_generation",
        "DistBucketedWeightUpdateMixin._finalize_and_resume_engines",
        then="barrier:exit",
    ),
    *phases(f"{_SYNC}.engine_control", "resume_generation", "finish_engines", then="barrier:exit"),
    *phases(_ENGINE, "resume_generation", "SGLangEngine.continue_generation"),
)
