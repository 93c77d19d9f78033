"""The InfiniBand or RoCE transport failed under a collective.

What hangs
    All ranks of the communicator.

How it shows
    `Got completion from peer … with status=12` (or `with error 12`), `ibv_poll_cq` or
    `ibv_modify_qp failed` in a log before any time-out. Status 5 only says that the other end gave
    up first.

What to do
    Look at the link (counters, cable, PFC); set NCCL_IB_GID_INDEX and NCCL_IB_HCA as the fabric
    needs; NCCL_IB_DISABLE=1 tells whether it is the fabric.

Not to be confused with
    A peer that died, after which the same lines appear.

Source
    https://github.com/OpenRLHF/OpenRLHF/issues/621
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding, quotes
from watchdog.situation import Situation

CAUSE_CLASS: Final = "nccl_transport"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    said = situation.log(
        r"(?i)got completion (from peer \S+ )?with (error|status=(?!5\b))|ibv_(modify_qp|poll_cq"
        r"|reg_mr)\w* (failed|returned)|IB.*(async event|port error)"
    )
    if not said or crash.dead_processes(situation):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if crash.earlier(situation, said[0]) else "possible",
        "The network adapter reported an error.",
        quotes(said, 2),
    )
