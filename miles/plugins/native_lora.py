"""A model provider that builds LoRA layers of its own.

    --custom-model-provider-path miles.plugins.native_lora.model_provider

It takes no notice of `--lora-rank`, so `is_lora_enabled` sees no LoRA, and the checks of
the flags let combinations pass that cannot work: that is what it is an example of. It does
know that its adapters are trained next to a colocated engine, and patches Megatron's
buffers as LoRA runs do, which takes their host copy away whatever the flags decided.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional

from miles.backends.megatron_utils.lora_utils import (
    convert_target_modules_to_megatron,
    patch_param_grad_buffer_for_colocate_mode_lora,
)
from miles.models.transformer import Transformer, TransformerConfig

RANK = 8


class NativeLoraLinear(nn.Module):
    """A frozen linear layer plus a trained product of low rank, with a scaling of 1.

    Attributes:
        weight: Frozen [out, in].
        lora_A: Trained [RANK, in].
        lora_B: Trained [out, RANK]; the adapter does nothing while it is zero.
    """

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.weight = base.weight.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(RANK, base.in_features))
        self.lora_B = nn.Parameter(torch.empty(base.out_features, RANK))

    def forward(self, inputs: Tensor) -> Tensor:
        """Map [..., in] to [..., out]."""
        low = functional.linear(inputs, self.lora_A)
        return functional.linear(inputs, self.weight) + functional.linear(low, self.lora_B)


def model_provider(args: argparse.Namespace, layers: range) -> Transformer:
    """Build one pipeline stage with adapters on `--target-modules`.

    A target is any part of a layer's path: `linear_qkv` is that layer everywhere,
    `layers.1` is all linear layers of decoder layer 1.

    Args:
        args: The run's flags.
        layers: The decoder layers of the stage.

    Returns:
        The stage; where no layer of it is a target, all of it is frozen.
    """
    config = TransformerConfig(args.vocab_size, args.hidden_size, args.num_layers, args.seq_length)
    model = Transformer(config, layers).requires_grad_(False)
    wanted = convert_target_modules_to_megatron(args.target_modules)
    for name, module in list(model.decoder.named_modules(prefix="decoder")):
        if isinstance(module, nn.Linear) and _is_target(name, wanted):
            parent = model.get_submodule(name.rpartition(".")[0])
            setattr(parent, name.rpartition(".")[2], NativeLoraLinear(module))
    if args.colocate:
        patch_param_grad_buffer_for_colocate_mode_lora()
    return model


def _is_target(name: str, targets: list[str]) -> bool:
    return targets == ["all-linear"] or any(f".{target}." in f".{name}." for target in targets)
