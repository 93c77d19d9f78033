"""LoRA under colocation without the weights backuper leaves no copy of the weights to read.

What hangs
    One rank, or a few, in the weight read at the beginning of the sync; all others in the next
    barrier of the gloo group. Nothing raises until the barrier's 30 minutes are over.

How it shows
    The trainer sleeps (its memory is paused), LoRA is on, `--colocate` or `--offload-train` is on,
    the backuper is off. The LoRA patch for colocation switches the host backup of the parameter
    buffers off whatever the validation decided, so the read meets released memory. The ledger of
    pausable memory says `paused_without_copy`; stacks end in a checksum or a copy of a tensor.
    The loud variant raises `CUDA error: invalid argument` at the same place.

What to do
    Drop --disable-weights-backuper (or add --lora-base-cpu-backup where it covers what is read).
    The run cannot go on: end it. Longer time-outs do not help.

Not to be confused with
    An adapter unload that never ends (lora_unload_waits_for_requests), which has the same flags
    but no rank in the weight read; several syncs of the same run that went through refute this.

Source
    https://github.com/radixark/miles/pull/2077
"""

from __future__ import annotations

from typing import Final

from watchdog.counting import counted
from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted, quotes, refuted, seen
from watchdog.signs.weights import (
    copies_exist,
    lora_flags,
    paused_without_copy,
    reads_weights,
    weight_read_errors,
)
from watchdog.situation import Situation, lines

CAUSE_CLASS: Final = "missing_backup"
FLAGS = (
    "lora_rank",
    "lora_adapter_path",
    "colocate",
    "offload_train",
    "enable_weights_backuper",
    "disable_weights_backuper",
    "lora_base_cpu_backup",
    "custom_model_provider_path",
)


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    flags = lora_flags(situation)
    readers = reads_weights(situation)
    no_copy = [p for p in readers if paused_without_copy(p)]
    if no_copy:
        verb = "reads" if len(no_copy) == 1 else "read"
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed",
            f"{counted(len(no_copy), 'rank')} {verb} paused memory of which no host copy exists.",
            [
                *(seen(situation, p) for p in no_copy),
                *(region for p in no_copy for region in paused_without_copy(p)),
                *flags,
            ],
            culprits=no_copy,
        )
    if not flags:
        return None
    return _by_flags_and_place(situation, flags) or _by_flags_alone(situation, flags)


def _by_flags_and_place(situation: Situation, flags: list[str]) -> Finding | None:
    """The flags, and a rank that failed or is stuck where the weights are read."""
    errors = weight_read_errors(situation)
    if errors:
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed" if situation.sleeps else "likely",
            "The weight read of a sleeping trainer failed, and no host copy exists.",
            [*quotes(errors, 2), *flags],
        )
    readers = reads_weights(situation)
    is_blocked = any(situation.wait(p).kind == "paused_memory" for p in readers)
    if not readers or (situation.sleeps is False and not is_blocked):
        return None
    if all(map(copies_exist, readers)):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        "A rank is stuck in the weight read, and the flags leave no host copy.",
        [
            *(seen(situation, p) for p in readers),
            *(quoted(e) for e in situation.log(lines.TRAINER_SLEEP)[-1:]),
            *flags,
        ],
        culprits=readers,
    )


def _by_flags_alone(situation: Situation, flags: list[str]) -> Finding | Refutation:
    """The flags, and nobody in the weight read: refuted, or possible where ranks are missing."""
    if situation.first_sync is False:
        because = "earlier syncs of this run went through, and no rank is in the weight read"
        return refuted(__name__, CAUSE_CLASS, because)
    seen_all = bool(situation.trainers) and all(map(situation.with_stack, situation.trainers))
    if seen_all and not _may_be_unseen(situation):
        return refuted(__name__, CAUSE_CLASS, "no rank is in the weight read")
    return finding(
        __name__,
        CAUSE_CLASS,
        "possible",
        "The flags leave no host copy of the weights; whether any is needed, only memory tells.",
        flags,
    )


def _may_be_unseen(situation: Situation) -> bool:
    size = situation.world_size
    return size is None or len(situation.trainers) < size
