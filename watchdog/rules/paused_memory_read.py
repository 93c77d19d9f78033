"""Weights are read while the memory they lie in is paused.

What hangs
    The reading rank, in a copy, a checksum or a device synchronisation; the others in the next
    collective.

How it shows
    The last lifecycle event of the trainer is `sleep()` or an offload without a `wake_up()`; the
    stack is in a weight read, a save or a copy to the host. On a CPU the kernel says so itself:
    the thread's wait channel is `handle_userfault`, or `__do_sys_pause` while memory is paused.

What to do
    End the run: a read of released memory never returns. Wake the trainer before its weights are
    read, or keep a host copy and read that.

Not to be confused with
    missing_backup_lora_colocate, where no copy exists at all, as ledger or flags say;
    storage_slow, where the bytes read or written grow between two looks.

Source
    https://github.com/THUDM/slime/pull/1888
    https://github.com/radixark/miles/pull/3128
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted, quotes, seen
from watchdog.signs.weights import (
    copies_exist,
    is_paused_for_sure,
    lora_flags,
    paused_without_copy,
    reads_weights,
    weight_read_errors,
)
from watchdog.situation import Situation, lines

CAUSE_CLASS: Final = "paused_memory_read"
FLAGS = ("offload_train", "colocate", "keep_old_actor", "ref_load", "offload_train_target")

_READ_THE_COPY = (
    "End the run: a read of released memory never returns. Wake the trainer before its weights "
    "are read, or read the host copy, which exists."
)


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    readers = reads_weights(situation)
    blocked = situation.doing("paused_memory", among=(*situation.trainers, *situation.engines))
    if any(paused_without_copy(p) for p in blocked):
        return None
    if lora_flags(situation) and not any(copies_exist(p) for p in blocked):
        return None  # missing_backup_lora_colocate says more
    if blocked:
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed" if any(map(is_paused_for_sure, blocked)) else "likely",
            "The kernel blocks a read of released memory.",
            [
                *(seen(situation, p) for p in blocked),
                *(r for p in blocked for r in paused_without_copy(p)),
            ],
            remedy=_READ_THE_COPY if all(map(copies_exist, blocked)) else "",
            culprits=blocked,
        )
    if lora_flags(situation):
        return None
    if situation.sleeps and readers:
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "A rank reads weights and does not come back; the trainer sleeps.",
            [
                *(seen(situation, p) for p in readers),
                *(quoted(e) for e in situation.log(lines.TRAINER_SLEEP)[-1:]),
            ],
            culprits=readers,
        )
    errors = weight_read_errors(situation)
    if errors and situation.sleeps:
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "The weight read of a sleeping trainer failed.",
            quotes(errors, 2),
        )
    return None
