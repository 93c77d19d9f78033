"""A host of the job is silent: it is down, it is frozen, or its link is cut.

What hangs
    Every collective with a rank of that host. No packet says that it is gone, so that nobody
    fails before a time-out.

How it shows
    Nothing of one host answers, neither its ranks nor what watches them, and from some moment on
    it has said no more where its ranks are. The ranks of the other hosts wait together.

What to do
    See whether the host is up and can be reached from the others (`ping`, its console, the
    scheduler, `dmesg` for a link that went down). If it is up, `miles-watchdog attach` on it shows
    what its ranks do.

Not to be confused with
    missing_rank, where the host of the missing rank answers; member_stopped and gil_held: of ranks
    that cannot speak, what watches them on their host tells.

Source
    https://man7.org/linux/man-pages/man7/tcp.7.html
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation
from watchdog.verdict.silent_hosts import said, silent_hosts

CAUSE_CLASS: Final = "other"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    named = {process.key for process in peers.accused(situation)}
    silent = {
        host: processes
        for host, processes in silent_hosts(situation).items()
        if named & {process.key for process in processes}
    }
    waiting = peers.waiting(situation)
    if not silent or not waiting or not peers.hung(situation):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        "Nothing is heard of a host of the job.",
        [*(said(situation, host, silent[host]) for host in silent), seen(situation, waiting[0])],
        culprits=[process for processes in silent.values() for process in processes],
    )
