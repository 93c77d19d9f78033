"""LoRA layers, and the patch that fits their buffers to colocated training."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Sequence
from typing import Any

import torch

from miles.backends.megatron_utils.param_and_grad_buffer import (
    DistributedDataParallelConfig,
    ParamAndGradBuffer,
)

logger = logging.getLogger(__name__)

ALL_LINEAR = ("all", "all-linear", "all_linear")

_OUTPUT_LAYERS = ("output_layer", "lm_head")

_HF_TO_MEGATRON = {
    "q_proj": "linear_qkv",
    "k_proj": "linear_qkv",
    "v_proj": "linear_qkv",
    "o_proj": "linear_proj",
    "gate_proj": "linear_fc1",
    "up_proj": "linear_fc1",
    "down_proj": "linear_fc2",
}

_is_patched = False


def patch_param_grad_buffer_for_colocate_mode_lora() -> None:
    """Build every later `ParamAndGradBuffer` without host backups.

    With LoRA the buffers hold adapters alone. `sleep()` pauses tag `default` only, so that
    adapters stay resident for the weight sync, and a host copy of them would be a waste.

    It overrules whatever validation decided about `disable_param_buffers_cpu_backup`. Who
    applies it to a run whose `sleep()` pauses all regions leaves the adapters paused and
    without a copy. Applying it again changes nothing.
    """
    global _is_patched
    if _is_patched:
        return
    _is_patched = True
    original = ParamAndGradBuffer.__init__

    @functools.wraps(original)
    def init_without_backups(
        self: ParamAndGradBuffer,
        ddp_config: DistributedDataParallelConfig,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        ddp_config.disable_param_buffers_cpu_backup = True
        ddp_config.disable_grad_buffers_cpu_backup = True
        original(self, ddp_config, *args, **kwargs)

    ParamAndGradBuffer.__init__ = init_without_backups  # type: ignore[method-assign]
    logger.info("ParamAndGradBuffer now keeps no host backups, for colocated LoRA")


class LoRALinear(torch.nn.Module):
    """A frozen linear layer and a trained low-rank correction.

    Computes `base(x) + alpha / rank * x A^T B^T`. It starts as the base alone, since B
    starts at zero.

    Args:
        base_layer: The layer to correct; frozen here.
        rank: Rank of the correction, above 0.
        alpha: Scale of the correction, times rank.

    Attributes:
        base_layer: The frozen layer.
        lora_A: Shape (rank, in_features).
        lora_B: Shape (out_features, rank).
        scaling: alpha / rank.
    """

    def __init__(self, base_layer: torch.nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        if rank <= 0:
            raise ValueError(f"rank must be above 0, not {rank}")
        self.base_layer = base_layer.requires_grad_(False)
        weight = base_layer.weight
        self.lora_A = torch.nn.Parameter(weight.new_empty(rank, base_layer.in_features))
        self.lora_B = torch.nn.Parameter(weight.new_zeros(base_layer.out_features, rank))
        torch.nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply base and correction to `x`, shape (..., in_features)."""
        low_rank = torch.nn.functional.linear(x, self.lora_A)
        correction = torch.nn.functional.linear(low_rank, self.lora_B)
        base: torch.Tensor = self.base_layer(x)
        return base + self.scaling * correction

    @torch.no_grad()
    def merged_weight(self) -> torch.Tensor:
        """The base weight with the correction added, shape (out_features, in_features)."""
        return self.base_layer.weight + self.scaling * (self.lora_B @ self.lora_A)


def apply_lora(
    model: torch.nn.Module, rank: int, alpha: float, target_modules: str | Sequence[str]
) -> torch.nn.Module:
    """Freeze a model and put LoRA on its target layers, in place.

    Args:
        model: Any model with `torch.nn.Linear` layers.
        rank: See `LoRALinear`.
        alpha: See `LoRALinear`.
        target_modules: Last parts of the layers' names, in Megatron's or Hugging Face's
            spelling; `all-linear` is every linear layer but the output layer.

    Returns:
        The same model.

    Raises:
        ValueError: No layer is meant by `target_modules`.
    """
    model.requires_grad_(False)
    wanted = convert_target_modules_to_megatron(target_modules)
    targets = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, torch.nn.Linear) and _is_target(name, wanted)
    ]
    if not targets:
        raise ValueError(f"no linear layer of the model is named {', '.join(wanted)}")
    for parent, name, child in targets:
        setattr(parent, name, LoRALinear(child, rank, alpha))
    return model


def convert_target_modules_to_megatron(target_modules: str | Sequence[str]) -> list[str]:
    """Translate layer names into Megatron's spelling; unknown ones stay as they are.

    Returns:
        Each name once, in order; `["all-linear"]` for any spelling of that.
    """
    names = target_modules.split(",") if isinstance(target_modules, str) else target_modules
    names = [name.strip() for name in names]
    if any(name in ALL_LINEAR for name in names):
        return ["all-linear"]
    return list(dict.fromkeys(_HF_TO_MEGATRON.get(name, name) for name in names))


def is_adapter_param_name(name: str) -> bool:
    """Whether a parameter's name is that of a LoRA adapter."""
    return "lora_" in name


def is_lora_model(model: torch.nn.Module) -> bool:
    """Whether a model has LoRA adapters, whatever the flags say."""
    return any(is_adapter_param_name(name) for name, _ in model.named_parameters())


def _is_target(name: str, wanted: Sequence[str]) -> bool:
    return name in wanted or (wanted == ["all-linear"] and name not in _OUTPUT_LAYERS)
