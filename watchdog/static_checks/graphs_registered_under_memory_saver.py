"""CUDA graphs of a multi-node engine are registered with NCCL in memory that is paused and resumed.

What can happen
    After the resume the first graph replay never ends on any worker: full utilisation at idle
    power.

What decides
    Whether the engine's tensor parallelism crosses nodes, and whether its NCCL registers graph
    buffers.

What to do
    Set NCCL_GRAPH_REGISTER=0 for the engines.

Source
    https://github.com/sgl-project/sglang/pull/38936
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "graph-registered-before-resume"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    switches = launch.switches
    if launch.variable("NCCL_GRAPH_REGISTER") == "0":
        return None
    saver = (
        "enable_memory_saver",
        "sglang_enable_memory_saver",
        "offload_rollout",
        "colocate",
        "offload",
    )
    if not switches.on(*saver) or switches.off("offload_rollout"):
        return None
    if switches.on("disable_cuda_graph", "sglang_disable_cuda_graph", "enforce_eager"):
        return None
    size = max(
        switches.number(name) or 1
        for name in ("rollout_num_gpus_per_engine", "tensor_parallel_size", "tp_size")
    )
    per_node = switches.number("num_gpus_per_node") or switches.number("n_gpus_per_node") or 8
    if size <= per_node:
        return None
    facts = launch.shown(
        "rollout_num_gpus_per_engine",
        "tensor_parallel_size",
        "tp_size",
        "num_gpus_per_node",
        *saver,
    )
    return Seen("likely", (*facts, "NCCL_GRAPH_REGISTER is not 0"))
