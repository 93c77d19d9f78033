"""A checkpoint is saved while the trainer is offloaded.

What hangs
    The rank that copies its tensors to the host, for ever; the others in the gather of the save.

How it shows
    The last lifecycle event is a sleep without a wake-up, the process groups were rebuilt, the
    stack is in a save: `save_model`, `preload_tensors`, a device synchronisation. Two looks
    minutes apart are the same.

What to do
    Wake the trainer before it saves, or save before it sleeps.

Not to be confused with
    storage_slow, where bytes grow; a save of a trainer that is awake.

Source
    https://github.com/THUDM/slime/pull/1888
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation, lines
from watchdog.verdict import (
    duration,
)

CAUSE_CLASS: Final = "paused_memory_read"
FLAGS = ("offload_train", "save", "save_interval")


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    saving = [
        p
        for p in situation.at(r"^save|save_model|save_checkpoint|preload_tensors")
        if situation.wait(p).kind in ("weight_read", "device_sync", "file_io", "paused_memory")
        and situation.moving(p) is not True
    ]
    if not saving or situation.sleeps is not True or not peers.hung(situation):
        return None
    twice = any(duration.stands_still(situation, p) for p in saving)
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed" if twice else "likely",
        "A sleeping trainer copies its weights for a checkpoint.",
        [
            *(seen(situation, p) for p in saving),
            *(quoted(e) for e in situation.log(lines.TRAINER_SLEEP)[-1:]),
        ],
        culprits=saving,
    )
