"""The trainer is offloaded to disk without the weights backuper.

What can happen
    No rank can read weights from the disk copy: the first sync reads released memory.

What decides
    Nothing: the combination has no readable copy.

What to do
    Drop --disable-weights-backuper, or use --offload-train-target cpu.

Source
    https://github.com/radixark/miles/pull/2077
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "missing-backup-lora-colocate"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    switches = launch.switches
    off = switches.on("disable_weights_backuper") or switches.off("enable_weights_backuper")
    if switches.value("offload_train_target") != "disk" or not off:
        return None
    if switches.off("offload_train"):
        return None
    names = ("offload_train_target", "disable_weights_backuper", "enable_weights_backuper")
    return Seen("certain", launch.shown(*names))
