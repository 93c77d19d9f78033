"""A member of the job was stopped by a signal.

What hangs
    All others, in the next collective or call. The stopped process reports nothing, not even an
    error, and no time-out of its own runs out.

How it shows
    The kernel gives state `T (stopped)`, the wait channel is `do_signal_stop`; py-spy cannot
    suspend the process.

What to do
    Continue it (`kill -CONT`) and find out who stopped it: a job scheduler that suspends, a
    terminal (SIGTSTP, SIGTTOU of a background job), a debugger that was left.

Not to be confused with
    State `t (tracing stop)` in the moment in which a debugger takes a dump; a process in state
    `D`, which waits for a device or a file system.

Source
    https://man7.org/linux/man-pages/man7/signal.7.html
"""

from __future__ import annotations

from typing import Final

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding
from watchdog.situation import Situation
from watchdog.waits.kernel import main_thread

CAUSE_CLASS: Final = "other"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    members = (*situation.trainers, *situation.engines)
    found = [p for p in situation.doing("stopped", among=members) if not _is_traced(p)]
    if not found or not peers.hung(situation):
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed",
        f"{found[0].key} is stopped by a signal.",
        [f"{p.key}: {p.status_detail or 'state T'}{_channel(p)}" for p in found],
        culprits=found,
    )


def _is_traced(process: Process) -> bool:
    """Whether whoever took the dump stopped it for a moment."""
    thread = main_thread(process)
    return "tracing" in process.status_detail or (thread is not None and thread.state == "t")


def _channel(process: Process) -> str:
    thread = main_thread(process)
    return f", wait channel {thread.wchan}" if thread is not None and thread.wchan else ""
