"""Broadcast: each stage's first rank sends its chunks to all engines at once, over gloo."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from miles.backends.megatron_utils.update_weight.hf_weight_iterator_direct import Chunk
from miles.backends.megatron_utils.update_weight.update_weight_from_distributed.mixin import (
    DistBucketedWeightUpdateMixin,
)
from miles.backends.sglang_utils.sglang_engine import SGLangEngine
from miles.utils.tensor_bucket import described
from miles.utils.weight_group import WeightGroup


class UpdateWeightFromDistributed(DistBucketedWeightUpdateMixin):
    """Sends by broadcast in one group a stage: its first rank and every engine."""

    _groups: tuple[tuple[list[SGLangEngine], WeightGroup], ...] = ()

    def connect_rollout_engines(self, rollout_engines: list[SGLangEngine]) -> None:
        """Meet the engines in new groups. Blocks until all of them came."""
        super().connect_rollout_engines(rollout_engines)
        self._groups = tuple(
            (engines, connect_rollout_engines_from_distributed(name, engines))
            for name, engines in self._destinations()
        )

    def _destinations(self) -> list[tuple[str, list[SGLangEngine]]]:
        """Name and members of the groups in which this rank is the source."""
        if self._state.replica != 0:
            return []
        return [(f"miles-pp_{self._state.stage}", self._engines)]

    def _update_weight_implementation(self, chunk: Chunk) -> None:
        for engines, group in self._groups:
            update_weights_from_distributed(engines, group, chunk, self.weight_version)


def connect_rollout_engines_from_distributed(name: str, engines: list[SGLangEngine]) -> WeightGroup:
    """Make a group of this rank (member 0) and the engines (1, 2, …).

    Raises:
        EngineError: An engine refused or is gone.
    """
    server = WeightGroup.listen()
    size = len(engines) + 1
    with ThreadPoolExecutor(len(engines), thread_name_prefix="connect-engine") as pool:
        joined = [
            pool.submit(
                engine.init_weights_update_group, server.port, member, size, name, server.host
            )
            for member, engine in enumerate(engines, start=1)
        ]
        group = WeightGroup(name, server, 0, size)
        for each in joined:
            each.result()
    return group


def update_weights_from_distributed(
    engines: list[SGLangEngine], group: WeightGroup, chunk: Chunk, weight_version: int
) -> None:
    """Tell the engines what comes, then broadcast it.

    Raises:
        EngineError: An engine refused, failed, or is gone.
    """
    tensors = [(name, tensor.detach().contiguous()) for name, tensor in chunk]
    header = [described(name, tensor) for name, tensor in tensors]
    with ThreadPoolExecutor(len(engines), thread_name_prefix="tell-engine") as pool:
        told = [
            pool.submit(e.update_weights_from_distributed, group.name, header, weight_version)
            for e in engines
        ]
        for _, tensor in tensors:
            group.broadcast(tensor)
        for each in told:
            each.result()
