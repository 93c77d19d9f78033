"""Whether the engines hold the trainer's weights, bit for bit."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import torch.distributed as dist
from torch import Tensor

from miles.backends.megatron_utils.update_weight.hf_weight_iterator_direct import (
    HfWeightIteratorDirect,
)
from miles.backends.sglang_utils.sglang_engine import EngineError, SGLangEngine
from miles.utils.distributed_utils import get_gloo_group
from miles.utils.lora import lora_rollout_enabled
from miles.utils.tensor_bucket import checksum


def compare_with_engines(
    args: argparse.Namespace, weights: Mapping[str, Tensor], engines: list[SGLangEngine]
) -> int:
    """Gather the checksums of all ranks, and compare them with every engine's on rank 0.

    Args:
        args: The run's flags.
        weights: This rank's live weights by name.
        engines: All engines of the run.

    Returns:
        Tensors compared on each engine; 0 on other ranks than 0.

    Raises:
        EngineError: An engine lacks a tensor, or holds another; names it.
    """
    iterator = HfWeightIteratorDirect(args)
    chunks = [*iterator.get_hf_weight_chunks(weights)]
    if lora_rollout_enabled(args):
        chunks += iterator.get_hf_weight_chunks(weights, adapters=True)
    mine = {name: checksum(tensor) for chunk in chunks for name, tensor in chunk}
    is_first = dist.get_rank() == 0
    gathered: list[dict[str, int]] = [{} for _ in range(dist.get_world_size())]
    dist.gather_object(mine, gathered if is_first else None, dst=0, group=get_gloo_group())
    if not is_first:
        return 0
    trained = {name: value for rank in gathered for name, value in rank.items()}
    for engine in engines:
        served = engine.weights_checksum()
        wrong = sorted(n for n in trained.keys() | served.keys() if trained.get(n) != served.get(n))
        if wrong:
            raise EngineError(
                f"engine {engine.index} at {engine.address} differs from the trainer in "
                f"{len(wrong)} of {len(trained)} tensors, first {wrong[0]}"
            )
    return len(trained)
