"""What every transfer to engines on other devices has in common: the order of the sync."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

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


class DistBucketedWeightUpdateMixin:
    """Pause, barrier, chunks, barrier, resume, barrier; a subclass sends a chunk.

    Args:
        args: The run's flags.
        weights_getter: Returns this rank's weights by name.
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
        self._engines_hold_base = False
        self.weight_version = 0

    def connect_rollout_engines(self, rollout_engines: list[SGLangEngine]) -> None:
        """Take the engines to send to. A collective of all ranks."""
        self._engines = rollout_engines

    def update_weights(self) -> None:
        """Bring the engines up to this rank's weights. A collective of all ranks.

        Raises:
            EngineError: An engine refused, failed, or is gone.
            TimeoutError: An engine did not get rid of its running requests.
        """
        self.weight_version += 1
        self._pause_and_prepare_engines()
        dist.barrier(group=get_gloo_group())
        self._gather_and_update_non_expert_weights(self._weights_getter())
        dist.barrier(group=get_gloo_group())
        self._finalize_and_resume_engines()
        dist.barrier(group=get_gloo_group())

    def _gather_and_update_non_expert_weights(self, weights: Mapping[str, Tensor]) -> None:
        sends_adapters = lora_rollout_enabled(self._args)
        if not (sends_adapters and self._engines_hold_base):
            for chunk in self._iterator.get_hf_weight_chunks(weights):
                self._update_weight_implementation(chunk)
            self._engines_hold_base = engines_keep_weights(self._args)
        if sends_adapters:
            self._update_lora_weights(weights)

    def _update_lora_weights(self, weights: Mapping[str, Tensor]) -> None:
        scaling = self._args.lora_alpha / self._args.lora_rank
        for chunk in self._iterator.get_hf_weight_chunks(weights, adapters=True):
            if self._state.replica == 0:
                for engine in self._engines:
                    engine.load_lora_adapter_from_tensors(
                        [pack_tensors(chunk)], scaling, self.weight_version
                    )

    def _pause_and_prepare_engines(self) -> None:
        if dist.get_rank() == 0:
            pause_engines(self._engines, self._args.pause_generation_mode)

    def _finalize_and_resume_engines(self) -> None:
        if dist.get_rank() == 0:
            finish_engines(self._engines, self.weight_version)

    def _update_weight_implementation(self, chunk: Chunk) -> None:
        raise NotImplementedError
