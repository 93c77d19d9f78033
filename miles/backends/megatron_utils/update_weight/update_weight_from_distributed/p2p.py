"""Point to point: every replica of a stage serves its share of the engines, side by side."""

from __future__ import annotations

from miles.backends.megatron_utils.update_weight.update_weight_from_distributed.broadcast import (
    UpdateWeightFromDistributed,
)
from miles.backends.sglang_utils.sglang_engine import SGLangEngine


class UpdateWeightP2P(UpdateWeightFromDistributed):
    """Sends over one direct connection an engine, from the replica that serves it."""

    def _destinations(self) -> list[tuple[str, list[SGLangEngine]]]:
        state = self._state
        return [
            (f"miles-p2p_{state.stage}_{engine.index}", [engine])
            for engine in self._engines
            if engine.index % state.num_replicas == state.replica
        ]
