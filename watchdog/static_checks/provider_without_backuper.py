"""A model provider of the run's own is used under colocation or offload without the backuper.

What can happen
    Where the provider builds LoRA layers, one rank hangs in the weight read of the sync, because
    its memory is paused and no copy of it exists; the others wait at the barrier until it times
    out. The stack's own check of these flags goes by --lora-rank and sees no LoRA.

What decides
    What the provider builds, which is not looked into here, and whether every tensor that the
    sync reads is resident or has a host copy.

What to do
    Drop --disable-weights-backuper, or keep --weight-residency-audit on, which fails in place
    of hanging.

Source
    https://github.com/radixark/miles/pull/2077
"""

from __future__ import annotations

from typing import Final

from watchdog.signs.weights import flags_without_copy, lora_flags
from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "missing-backup-lora-colocate"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    situation = launch.situation
    if lora_flags(situation) or not launch.switches.on("custom_model_provider_path"):
        return None
    flags = flags_without_copy(situation)
    if not flags:
        return None
    audit_off = launch.shown("no_weight_residency_audit")
    if audit_off or launch.switches.off("weight_residency_audit"):
        flags.append(f"{' '.join(audit_off) or 'weight_residency_audit off'}: nothing tells before")
    return Seen("suspect", tuple(flags))
