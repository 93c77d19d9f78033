"""The two ends of the update group load different NCCL libraries.

What hangs
    All members, in the first message of the group: the source has sent and waits for the answer,
    the receivers wait for the data.

How it shows
    `Mismatched NCCL version detected`; two `NCCL version` lines that differ, two libraries in the
    process maps, or two `nvidia-nccl-*` wheels that write into the same path; `LD_PRELOAD` on
    one side.

What to do
    Load one NCCL build in trainer and engine: remove the second wheel, drop the preload, check
    `/proc/<pid>/maps` of both.

Not to be confused with
    transport_settings_differ; a member that never came to the group.

Source
    https://github.com/marin-community/marin/issues/7344
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import engines, peers, settings
from watchdog.signs.answers import finding, quotes
from watchdog.situation import Situation

CAUSE_CLASS: Final = "version_mismatch"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    said = situation.log(r"Mismatched NCCL version")
    if said:
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed",
            "NCCL found another version at the other end of the group.",
            quotes(said, 2),
        )
    versions = settings.nccl_versions(situation)
    trainer, engine = versions.get("trainer", set()), versions.get("engine", set())
    packages = {name: v for name, v in versions.items() if name.startswith("package")}
    two = len(packages) > 1 and len({v for vs in packages.values() for v in vs}) > 1
    if trainer and engine and not trainer & engine:
        stuck = peers.hung(situation) and (
            engines.callers(situation) or engines.members(situation, "collective", "rendezvous")
        )
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely" if stuck else "possible",
            f"Trainer and engine run NCCL {_words(trainer)} and {_words(engine)}.",
            [f"{side}: NCCL {_words(found)}" for side, found in versions.items()],
        )
    if two:
        return finding(
            __name__,
            CAUSE_CLASS,
            "possible",
            "Two NCCL packages are installed.",
            [f"{name} {_words(v)}" for name, v in packages.items()],
        )
    return None


def _words(values: set[str]) -> str:
    return ", ".join(sorted(values))
