"""AReaL: FSDP or Megatron engines; pause and resume go over HTTP from rank 0.

Source:
    inclusionAI/AReaL at 4aef98d8d, the modules named here.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed, phases, section

FRAMEWORK = "AReaL"
_FSDP = "areal.engine.fsdp_engine"
_MEGATRON = "areal.engine.megatron_engine"
_REMOTE = "areal.infra.remote_inf_engine"


def _connected(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    active_flags.record_tree(getattr(args[0], "config", None), type(args[0]).__name__)


HOOKS = (
    observed(_FSDP, "FSDPEngine.connect_engine", _connected),
    observed(_MEGATRON, "MegatronEngine.connect_engine", _connected),
    section(_FSDP, "FSDPEngine.update_weights"),
    section(_MEGATRON, "MegatronEngine.update_weights"),
    *phases(
        _FSDP,
        "read_and_send",
        "FSDPEngine._update_weights_from_distributed",
        "FSDPEngine._update_weights_from_disk",
    ),
    *phases(
        _FSDP,
        "send_chunk",
        "FSDPEngine._update_bucket_weights_from_distributed_async",
        "FSDPEngine._wait_pending_weight_update_bucket",
    ),
    *phases(_MEGATRON, "read_and_send", "MegatronEngine._update_weights_from_distributed"),
    *phases(_MEGATRON, "send_chunk", "MegatronEngine._update_bucket_weights_from_distributed"),
    *phases("areal.engine.core.distributed", "connect", "init_custom_process_group"),
    *phases(_REMOTE, "pause_generation", "RemoteInfEngine.pause_generation", then="barrier:entry"),
    *phases(
        _REMOTE, "resume_generation", "RemoteInfEngine.continue_generation", then="barrier:exit"
    ),
)
