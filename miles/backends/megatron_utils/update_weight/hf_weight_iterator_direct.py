"""Cuts this rank's weights into chunks that fit the update buffer."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping

from torch import Tensor

from miles.utils.lora import is_lora_enabled, lora_rollout_enabled

_ADAPTER = re.compile(r"(?P<module>.+)\.(?P<part>lora_[AB])(\.weight)?")

Chunk = list[tuple[str, Tensor]]


def is_adapter(name: str) -> bool:
    """Whether a parameter belongs to a LoRA adapter."""
    return _ADAPTER.fullmatch(name) is not None


class HfWeightIteratorDirect:
    """Yields weights under the names the engines know, in the model's order.

    Args:
        args: The run's flags.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._buffer_bytes: int = args.update_weight_buffer_size
        self._merges_adapters = is_lora_enabled(args) and not lora_rollout_enabled(args)
        self._scaling = args.lora_alpha / args.lora_rank if args.lora_rank else 1.0

    def get_hf_weight_chunks(
        self, weights: Mapping[str, Tensor], adapters: bool = False
    ) -> Iterator[Chunk]:
        """Cut weights into chunks.

        Args:
            weights: This rank's tensors by name; each is read only when its chunk is.
            adapters: Yield the adapters that `is_lora_enabled` knows, and nothing else.

        Yields:
            Name and tensor, at least one a chunk. A chunk holds at most
            `--update-weight-buffer-size` bytes, or a single larger tensor.
        """
        chunk: Chunk = []
        size_bytes = 0
        for name, tensor in self._selected(weights, adapters):
            if chunk and size_bytes + tensor.nbytes > self._buffer_bytes:
                yield chunk
                chunk, size_bytes = [], 0
            chunk.append((name, tensor))
            size_bytes += tensor.nbytes
        if chunk:
            yield chunk

    def _selected(self, weights: Mapping[str, Tensor], adapters: bool) -> Chunk:
        if adapters:
            return [(n, t) for n, t in weights.items() if is_adapter(n)]
        if self._merges_adapters:
            return [(n, self._merged(n, t, weights)) for n, t in weights.items() if not is_adapter(n)]
        return list(weights.items())

    def _merged(self, name: str, weight: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
        module = name.removesuffix(".weight")
        down, up = weights.get(f"{module}.lora_A"), weights.get(f"{module}.lora_B")
        if down is None or up is None:
            return weight
        return weight + self._scaling * (up @ down)
