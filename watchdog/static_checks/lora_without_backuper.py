"""LoRA under colocation or offload runs without the weights backuper.

What can happen
    One rank hangs in the weight read of the sync, because its memory is paused and no copy of
    it exists; the others wait at the barrier until it times out.

What decides
    Memory alone: whether every tensor that the sync reads is resident or has a host copy. Many
    runs with these flags have, some do not. The residency audit tells before the read.

What to do
    Drop --disable-weights-backuper, or keep --weight-residency-audit on, which fails in place
    of hanging.

Source
    https://github.com/radixark/miles/pull/2077
"""

from __future__ import annotations

from typing import Final

from watchdog.signs.weights import lora_flags
from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "missing-backup-lora-colocate"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    flags = lora_flags(launch.situation)
    return Seen("suspect", tuple(flags)) if flags else None
