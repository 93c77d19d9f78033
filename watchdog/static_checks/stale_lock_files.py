"""Lock files of a compiler are left behind.

What can happen
    The first rank that wants to compile waits for a lock that nobody holds; the others wait for
    it.

What decides
    Whether anything is going to be compiled that this lock protects.

What to do
    Remove them while no job runs.

Source
    https://github.com/flashinfer-ai/flashinfer/pull/993
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "jit-lock-left-behind"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    files = launch.host.lock_files if launch.host else ()
    return Seen("suspect", files) if files else None
