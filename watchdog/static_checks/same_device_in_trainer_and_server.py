"""Trainer and inference server are given the same device.

What can happen
    NCCL refuses two members of one communicator on one device (`Duplicate GPU detected`), often
    only in the server's log; the trainer waits.

What decides
    Nothing in server mode: the update group always has both.

What to do
    Give the server devices of its own, or use the colocated mode.

Source
    https://github.com/huggingface/trl/issues/3706
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Program, Seen

RULE: Final = "duplicate-device"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    trainers = [_devices(p) for p in launch.programs if not p.is_engine]
    engines = [_devices(p) for p in launch.programs if p.is_engine]
    shared = {d for own in trainers for d in own} & {d for own in engines for d in own}
    if not shared or launch.shares_devices:
        return None
    names = ", ".join(sorted(shared))
    return Seen("certain", (f"CUDA_VISIBLE_DEVICES of both contains {names}",))


def _devices(program: Program) -> frozenset[str]:
    value = program.environment.get("CUDA_VISIBLE_DEVICES", "")
    return frozenset(part.strip() for part in value.split(",") if part.strip())
