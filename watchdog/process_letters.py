"""The letter by which the kernel and `ps` name the state of a process."""

from __future__ import annotations

from collections.abc import Mapping

from watchdog.evidence import ProcessStatus

STATUS_BY_LETTER: Mapping[str, ProcessStatus] = {
    "R": "running",
    "S": "running",
    "I": "running",
    "D": "uninterruptible",
    "T": "stopped",
    "t": "stopped",
    "Z": "zombie",
    "X": "dead",
}
"""What each means to the diagnosis.

Source:
    proc_pid_stat(5) and ps(1); `t` is a stop by a tracer, `I` an idle kernel thread.
"""
