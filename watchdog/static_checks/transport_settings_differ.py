"""Trainers and engines get different NCCL settings.

What can happen
    The update group has no common transport: all members wait in its first message.

What decides
    Whether trainer and engine are in one communicator: weights that go by IPC or disk do not
    care.

What to do
    Set the same values on both ends.

Source
    https://github.com/huggingface/trl/issues/5865
"""

from __future__ import annotations

from typing import Final

from watchdog.signs.settings import TRANSPORT_VARIABLES
from watchdog.static_checks import modes
from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "transport-settings-differ"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    found = []
    for name in TRANSPORT_VARIABLES:
        trainers = {p.environment.get(name, "unset") for p in launch.programs if not p.is_engine}
        engines = {p.environment.get(name, "unset") for p in launch.programs if p.is_engine}
        engines |= modes.set_for_engines(launch, name)
        trainers |= modes.set_for_trainers(launch, name)
        if trainers and engines and trainers.isdisjoint(engines):
            found.append(f"{name}: {_words(trainers)} for trainers, {_words(engines)} for engines")
    if not found or launch.shares_devices:
        return None
    return Seen("likely", tuple(found))


def _words(values: set[str]) -> str:
    return " or ".join(sorted(values))
