"""Caches of compilers, or home, lie on network storage.

What can happen
    Ranks wait for lock files that are seen late or not at all; an absent file stays absent for
    up to a minute in another node's cache.

What decides
    How many nodes write there, and the mount's attribute cache.

What to do
    Point TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR and TORCH_EXTENSIONS_DIR at a local disk.

Source
    https://github.com/PrimeIntellect-ai/prime-rl/pull/3026
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "negative-lookup-cache"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    folders = launch.host.network_folders if launch.host else ()
    return Seen("suspect", folders) if folders else None
