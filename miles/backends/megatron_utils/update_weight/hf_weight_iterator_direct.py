"""Cuts this rank's weights into chunks that fit the update buffer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from torch import Tensor

from miles.backends.megatron_utils.lora_utils import is_adapter_param_name
from miles.utils.lora import is_lora_enabled, lora_rollout_enabled

Chunk = list[tuple[str, Tensor]]


class HfWeightIteratorDirect:
    """Yields weights under the names the engines know, in the model's order.

    Args:
        args: The run's flags.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._knows_adapters = is_lora_enabled(args)
        self._merges_adapters = is_lora_enabled(args) and not lora_rollout_enabled(args)

    def get_hf_weight_chunks(
        self, weights: Mapping[str, Tensor], adapters: bool = False
    ) -> Iterator[Chunk]:
        """Cut weights into chunks.

        Args:
            weights: This rank's tensors by name; each is read only when its chunk is.
            adapters: Yield adapters and nothing else. Otherwise those that
                `is_lora_enabled` knows are left out, or merged with `--lora-train-only`;
                those of a model that builds its own are weights like any other.

        Yields:
            Name and tensor, at least one a chunk. A chunk holds at most
            `--update-weight-buffer-size` bytes, or a single larger tensor.
        """
        chunk: Chunk = []
        size_bytes = 0
        for name, tensor in self._adapters(weights) if adapters else self._base(weights):
            if chunk and size_bytes + tensor.nbytes > self._args.update_weight_buffer_size:
                yield chunk
                chunk, size_bytes = [], 0
            chunk.append((name, tensor))
            size_bytes += tensor.nbytes
        if chunk:
            yield chunk

    def _adapters(self, weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        yield from ((n, t) for n, t in weights.items() if is_adapter_param_name(n))

    def _base(self, weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in weights.items():
            if self._knows_adapters and is_adapter_param_name(name):
                continue
            merged = self._merged(name, tensor, weights) if self._merges_adapters else tensor
            yield name.replace(".base_layer.", "."), merged

    def _merged(self, name: str, weight: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        module = name.removesuffix(".base_layer.weight")
        if f"{module}.lora_A" not in weights:
            return weight
        scaling: float = self._args.lora_alpha / self._args.lora_rank
        product = weights[f"{module}.lora_B"].detach() @ weights[f"{module}.lora_A"].detach()
        return weight.detach() + scaling * product
