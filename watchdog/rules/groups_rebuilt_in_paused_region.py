"""Process groups are rebuilt while memory is paused, and their buffers lie in released memory.

What hangs
    The first collective of a rebuilt group, on a sleeping trainer.

How it shows
    The trainer sleeps, `Reloading N process groups` is in the log, and `CUDA error: invalid
    argument` is raised from a collective during connect, in the first sync.

What to do
    Allocate communicator buffers outside of pausable regions; wake before rebuilding.

Not to be confused with
    missing_backup_lora_colocate, whose error comes from the weight read.

Source
    https://github.com/radixark/miles/pull/3207
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "paused_memory_read"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    event = crash.first_error(
        situation, r"CUDA error: invalid argument|CUresult error: 1|invalid argument"
    )
    if event is None or event.engine is not None or situation.sleeps is not True:
        return None
    text = event.text + str(event.fields)
    if not re.search(
        r"all_gather|broadcast|barrier|all_reduce|connect_rollout_engines|new_group", text
    ) or re.search(r"tensor_backper|weights_getter|_compute_hash", text):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        "A collective of a rebuilt group failed on a sleeping trainer.",
        [quoted(event), *(quoted(e) for e in situation.log(r"Reloading \d+ process groups")[:1])],
    )
