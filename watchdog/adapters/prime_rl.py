"""prime-rl: trainer, orchestrator and inference meet through marker files and HTTP.

Source:
    PrimeIntellect-ai/prime-rl at 559b44772 and 69308b88c, the modules named here.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed, phases, section

FRAMEWORK = "prime-rl"
_WEIGHTS = "prime_rl.transports.weights"
_OLD = "prime_rl.trainer.rl.broadcast"


def _set_up(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    for given in (*args, *kwargs.values()):
        if hasattr(given, "type") and hasattr(given, "model_dump"):
            active_flags.record_tree(given, "setup_weight_broadcast")


HOOKS = (
    observed(_WEIGHTS, "setup_weight_broadcast", _set_up),
    section(f"{_WEIGHTS}.nccl", "NCCLWeightBroadcast.broadcast_weights"),
    section(f"{_WEIGHTS}.filesystem", "FileSystemWeightBroadcast.broadcast_weights"),
    section(f"{_WEIGHTS}.nixl.nixl", "NIXLWeightBroadcast.broadcast_weights"),
    section(f"{_OLD}.nccl", "NCCLWeightBroadcast.broadcast_weights", is_optional=True),
    section(f"{_OLD}.filesystem", "FileSystemWeightBroadcast.broadcast_weights", is_optional=True),
    *phases(f"{_WEIGHTS}.nccl", "wait_for_engines", "NCCLWeightBroadcast._wait_for_nccl_ready"),
    *phases(
        f"{_WEIGHTS}.nccl",
        "read_and_send",
        "NCCLWeightBroadcastSender.broadcast_weights",
        then="barrier:exit",
    ),
    *phases(f"{_WEIGHTS}.nccl", "send_chunk", "broadcast_state_dict"),
    *phases("prime_rl.utils.pathing", "wait_for_file", "sync_wait_for_path"),
)
