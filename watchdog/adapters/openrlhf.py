"""OpenRLHF: DeepSpeed trainers, vLLM engines, one parameter at a time.

Source:
    OpenRLHF/OpenRLHF at 3c3be6234 and 62987083, the modules named here.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed, phases, section

FRAMEWORK = "OpenRLHF"
_ACTOR = "openrlhf.trainer.ray.ppo_actor"


def _built(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    active_flags.record_tree(getattr(args[0], "args", None), "ActorPPOTrainer")


HOOKS = (
    observed(_ACTOR, "ActorPPOTrainer.__init__", _built),
    section(_ACTOR, "ActorPPOTrainer.broadcast_to_vllm"),
    section(_ACTOR, "ActorPPOTrainer._broadcast_to_vllm", is_optional=True),
    *phases(_ACTOR, "connect", "ActorPPOTrainer._init_vllm_sync_group"),
    *phases("openrlhf.utils.distributed_util", "barrier:exit", "torch_dist_barrier_and_cuda_sync"),
    *phases("openrlhf.utils.distributed_util", "connect", "stateless_init_process_group"),
)
