"""Arguments or configuration saved as JSON: `args.json`, a resolved configuration."""

from __future__ import annotations

import json

from watchdog.intake.blocks import Context
from watchdog.intake.documents.configuration import leaves_of
from watchdog.intake.flags import flag
from watchdog.intake.parts import Parts

# Some of what a configuration of training holds; a JSON without any is something else.
_TELLING = (
    "hf_checkpoint",
    "num_gpus",
    "lora_rank",
    "colocate",
    "tensor_model_parallel_size",
    "rollout",
    "actor_num_nodes",
    "learning_rate",
    "model_name",
    "model_path",
    "global_batch_size",
    "gpu_memory_utilization",
    "tensor_parallel_size",
    "weight_sync",
)


def score(head: str) -> float:
    """An object with several names that arguments of training have."""
    start = head.lstrip()
    if not start.startswith("{"):
        return 0.0
    return 0.6 if sum(f'"{name}' in head or f"_{name}" in head for name in _TELLING) >= 2 else 0.0


def parse(text: str, context: Context, parts: Parts) -> None:
    """One flag a leaf."""
    data = json.loads(text)
    leaves = leaves_of(data)
    if not isinstance(data, dict) or not leaves:
        raise ValueError("no arguments")
    for name, value in leaves:
        parts.add_flag(flag(name, value, context.file))
