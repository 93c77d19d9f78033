"""NCCL loses proxy operation slots on ARM until a rank cannot launch any more.

What hangs
    All ranks, in the same collective at 100 % utilisation; one of them has not finished launching
    it.

How it shows
    Native frames of that one rank spin in `ncclLocalOpAppend` or `ncclProxySaveOp`; the machine
    is aarch64, NCCL older than 2.29.3, several nodes, no Xid. NCCL RAS counts one operation less
    on it.

What to do
    Upgrade NCCL to 2.29.3 or later. No environment variable helps.

Not to be confused with
    A divergence of ranks: the operation and its number are the same everywhere.

Source
    https://github.com/marin-community/marin/pull/8038
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import settings
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "nccl_transport"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    spinning = situation.at(
        r"ncclLocalOpAppend|ncclProxySaveOp", among=situation.evidence.processes
    )
    if not spinning or len(spinning) > 2:
        return None
    arm = situation.log(r"aarch64|arm64")
    versions = {v for vs in settings.nccl_versions(situation).values() for v in vs}
    old = [
        v for v in versions if settings.version_tuple(v) and settings.version_tuple(v) < (2, 29, 3)
    ]
    lag = situation.log(r"launched up to operation|MISMATCH")
    sure = bool(old) and bool(arm or lag)
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed" if sure else "likely",
        "One rank spins while it launches a collective that the others are in.",
        [
            *(seen(situation, p) for p in spinning),
            *(f"NCCL {v}" for v in old),
            *(quoted(e) for e in (*arm[:1], *lag[:2])),
        ],
        culprits=spinning,
    )
