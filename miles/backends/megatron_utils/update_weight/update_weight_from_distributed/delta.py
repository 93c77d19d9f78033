"""Disk delta: tensors that changed since the last sync go through files that engines read."""

from __future__ import annotations

import tempfile

from miles.backends.megatron_utils.update_weight.hf_weight_iterator_direct import Chunk
from miles.backends.megatron_utils.update_weight.update_weight_from_distributed.mixin import (
    DistBucketedWeightUpdateMixin,
)
from miles.utils.tensor_bucket import checksum, pack_tensors


class UpdateWeightFromDiskDelta(DistBucketedWeightUpdateMixin):
    """Sends what changed, judged by checksum; the first sync sends everything."""

    _sent: dict[str, int] | None = None

    def _update_weight_implementation(self, chunk: Chunk) -> None:
        if self._state.replica != 0:
            return
        self._sent = {} if self._sent is None else self._sent
        sums = {name: checksum(tensor) for name, tensor in chunk}
        changed = [(n, t) for n, t in chunk if self._sent.get(n) != sums[n]]
        # An empty file is sent as well: it carries the version.
        with tempfile.NamedTemporaryFile(prefix="miles-delta-", suffix=".bucket") as file:
            file.write(pack_tensors(changed))
            file.flush()
            for engine in self._engines:
                engine.update_weights_from_disk(file.name, self.weight_version)
        self._sent |= sums
