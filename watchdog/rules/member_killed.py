"""A trainer rank was killed from outside.

What hangs
    All other ranks, in the next collective.

How it shows
    The process is gone with signal 9 or another signal, without an exception of its own before;
    the peers may report `Connection closed by peer`.

What to do
    Find out who sent the signal: the kernel log names what its out-of-memory killer ended, the
    cgroup counters what a limit did; without either it was the launcher, the scheduler or a person.

Not to be confused with
    member_killed_by_memory_limit, where the kernel says so; an exit with a traceback; exit status
    86, and a launcher's SIGTERM beside it: so the watchdog ends a run that has stalled.

Source
    https://github.com/OpenRLHF/OpenRLHF/issues/624
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding
from watchdog.situation import Situation

CAUSE_CLASS: Final = "oom_or_killed"
IS_GENERAL: Final = True

_OF_AN_ABORT: Final = (
    "Read the last lines of its standard error: a process aborts by itself, and says why "
    "(`terminate called after throwing`, an assertion, `NCCL watchdog`). `std::bad_alloc` is "
    "memory that was refused, by `ulimit -v` or by the allocator."
)


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if not crash.crashed(situation):
        return None
    gone = [p for p in crash.dead_processes(situation) if p.role == "trainer"]
    killed = [p for p in gone if re.search(r"signal|SIG|killed|-9", p.status_detail)]
    if killed:
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed",
            f"{killed[0].key} was killed.",
            [f"{p.key}: {p.status_detail}" for p in killed],
            culprits=killed,
            remedy=_OF_AN_ABORT if all("SIGABRT" in p.status_detail for p in killed) else "",
        )
    if not gone or situation.logs.errors:
        return None
    # An exception would have left the section on its way out; only a signal or an abrupt exit
    # leaves it open in the black box.
    in_section = [p for p in gone if p.position is not None and p.position.section]
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if in_section else "possible",
        f"{gone[0].key} is gone, and no error tells why.",
        [f"{p.key}: {p.status}, {situation.wait(p).where}" for p in in_section or gone],
        culprits=gone,
    )
