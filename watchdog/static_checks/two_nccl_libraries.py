"""Two NCCL libraries are installed, or another one is put in front.

What can happen
    Trainer and engine may load different ones, and the update group hangs in its first message.

What decides
    Which libnccl each process maps (`grep libnccl /proc/<pid>/maps`).

What to do
    Keep one nvidia-nccl package, and take others off LD_LIBRARY_PATH and LD_PRELOAD.

Source
    https://github.com/marin-community/marin/issues/7344
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "nccl-versions-differ"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    packages = launch.switches.versions_like(r"^nvidia-nccl-")
    facts = [f"{name} {', '.join(sorted(found))}" for name, found in sorted(packages.items())]
    facts = facts if len(facts) > 1 else []
    for name in ("LD_PRELOAD", "VLLM_NCCL_SO_PATH"):
        if "libnccl" in launch.variable(name):
            facts.append(f"{name}={launch.variable(name)}")
    if "nccl" in launch.variable("LD_LIBRARY_PATH").lower():
        facts.append(f"LD_LIBRARY_PATH={launch.variable('LD_LIBRARY_PATH')}")
    return Seen("suspect", tuple(facts)) if facts else None
