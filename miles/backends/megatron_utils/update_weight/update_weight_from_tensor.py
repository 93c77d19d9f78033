"""The weight sync of colocated engines: chunks are gathered on one rank, which posts them.

Where a rank may wait, in order: the entry barrier (rank 0 meanwhile pauses the engines),
the read of its own weights, the gather of each chunk and (source ranks) the engine's
answer, the exit barrier, the final barrier (rank 0 meanwhile resumes the engines). None of
these has a time limit of its own but the gloo groups'.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch.distributed as dist
from torch import Tensor

from miles.backends.megatron_utils.parallel_state import ParallelState
from miles.backends.megatron_utils.update_weight.engine_control import (
    finish_engines,
    pause_engines,
)
from miles.backends.megatron_utils.update_weight.hf_weight_iterator_direct import (
    Chunk,
    HfWeightIteratorDirect,
)
from miles.backends.sglang_utils.sglang_engine import SGLangEngine
from miles.rollout.rollout_manager import engines_keep_weights
from miles.utils.distributed_utils import get_gloo_group
from miles.utils.lora import lora_rollout_enabled
from miles.utils.tensor_bucket import pack_tensors


@dataclass(frozen=True)
class EngineLink:
    """How the ranks of one pipeline stage reach one engine.

    Attributes:
        engine: The engine.
        ranks: Global ranks of the stage that share the work, ascending; the first of them
            is the source, which speaks to the engine.
        group: Their gloo group.
    """

    engine: SGLangEngine
    ranks: list[int]
    group: dist.ProcessGroup

    @property
    def source(self) -> int:
        """Global rank of the one that speaks to the engine."""
        return self.ranks[0]


class UpdateWeightFromTensor:
    """Sends the weights of all ranks to all engines.

    Each pipeline stage sends its own layers, as each is the only owner of them.

    Args:
        args: The run's flags.
        weights_getter: Returns this rank's weights by name. Reads them, in part or whole.
        state: Where this rank stands.

    Attributes:
        weight_version: Syncs begun so far.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        weights_getter: Callable[[], Mapping[str, Tensor]],
        state: ParallelState,
    ) -> None:
        self._args = args
        self._weights_getter = weights_getter
        self._state = state
        self._iterator = HfWeightIteratorDirect(args)
        self._engines: list[SGLangEngine] = []
        self._links: list[EngineLink] = []
        self._engines_hold_base = False
        self.weight_version = 0

    def connect_rollout_engines(self, rollout_engines: list[SGLangEngine]) -> None:
        """Make a gloo group for each engine and stage. A collective of all ranks."""
        self._engines = rollout_engines
        self._links = []
        per_engine = self._args.rollout_num_gpus_per_engine
        for engine in rollout_engines:
            colocated = range(engine.index * per_engine, (engine.index + 1) * per_engine)
            for stage_ranks in self._state.stage_ranks:
                # A stage with no rank on the engine's devices reaches it all the same.
                ranks = [rank for rank in stage_ranks if rank in colocated] or stage_ranks
                group = dist.new_group(ranks, backend="gloo")
                if dist.get_rank() in ranks:
                    self._links.append(EngineLink(engine, ranks, group))

    def update_weights(self) -> None:
        """Bring the engines up to this rank's weights. A collective of all ranks.

        Raises:
            EngineError: An engine refused, failed, or is gone.
            TimeoutError: An engine did not get rid of its running requests.
        """
        self.weight_version += 1
        if dist.get_rank() == 0:
            pause_engines(self._engines, self._args.pause_generation_mode)
        dist.barrier(group=get_gloo_group())
        weights = self._weights_getter()
        if lora_rollout_enabled(self._args):
            if not self._engines_hold_base:
                self._send_base_params(weights)
            self._send_lora_params(weights)
            self._engines_hold_base = engines_keep_weights(self._args)
        else:
            self._send_base_params(weights)
        dist.barrier(group=get_gloo_group())
        if dist.get_rank() == 0:
            finish_engines(self._engines, self.weight_version)
        dist.barrier(group=get_gloo_group())

    def _send_base_params(self, weights: Mapping[str, Tensor]) -> None:
        for chunk in self._iterator.get_hf_weight_chunks(weights):
            for link in self._links:
                buckets = _send_to_colocated_engine(link, chunk)
                if buckets:
                    link.engine.update_weights_from_tensor(buckets, self.weight_version)

    def _send_lora_params(self, weights: Mapping[str, Tensor]) -> None:
        scaling = self._args.lora_alpha / self._args.lora_rank
        for chunk in self._iterator.get_hf_weight_chunks(weights, adapters=True):
            for link in self._links:
                buckets = _send_to_colocated_engine(link, chunk)
                if buckets:
                    link.engine.load_lora_adapter_from_tensors(
                        buckets, scaling, self.weight_version
                    )


def _send_to_colocated_engine(link: EngineLink, chunk: Chunk) -> list[bytes]:
    """Gather a chunk on the link's source rank; each member packs its share of it.

    The members are replicas, so any of them may contribute any tensor.

    Returns:
        A bucket a member on the source rank, nothing on the others.
    """
    rank = dist.get_rank()
    member, num_members = link.ranks.index(rank), len(link.ranks)
    bucket = pack_tensors(chunk[member::num_members])
    gathered: list[bytes] = [b""] * num_members
    dist.gather_object(
        bucket, gathered if rank == link.source else None, dst=link.source, group=link.group
    )
    return gathered if rank == link.source else []
