"""NeMo-RL: DTensor or Megatron workers, vLLM or SGLang; the driver waits for all of them.

Source:
    NVIDIA-NeMo/RL at 7ea279abf, the modules named here.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed, phases, section

FRAMEWORK = "NeMo-RL"
_WORKERS = "nemo_rl.models.policy.workers"
_DTENSOR = f"{_WORKERS}.dtensor_policy_worker_v2"
_MEGATRON = f"{_WORKERS}.megatron_policy_worker"


def _built(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    active_flags.record_tree(getattr(args[0], "cfg", None), type(args[0]).__name__)


HOOKS = (
    observed(_DTENSOR, "DTensorPolicyWorkerV2Impl.__init__", _built),
    observed(_MEGATRON, "MegatronPolicyWorkerImpl.__init__", _built),
    section(_DTENSOR, "DTensorPolicyWorkerV2Impl.broadcast_weights_for_collective"),
    section(_DTENSOR, "DTensorPolicyWorkerV2Impl.stream_weights_via_ipc_zmq"),
    section(_MEGATRON, "MegatronPolicyWorkerImpl.broadcast_weights_for_collective"),
    section(_MEGATRON, "MegatronPolicyWorkerImpl.stream_weights_via_ipc_zmq"),
    *phases(
        f"{_WORKERS}.base_policy_worker",
        "connect",
        "AbstractPolicyWorker.init_collective",
        "AbstractPolicyWorker.maybe_init_zmq",
    ),
    *phases(
        "nemo_rl.models.policy.utils",
        "send_chunk",
        "stream_weights_via_ipc_zmq_impl",
        "stream_weights_via_http_impl",
    ),
    *phases("nemo_rl.utils.packed_tensor", "send_chunk", "packed_broadcast_producer"),
)
