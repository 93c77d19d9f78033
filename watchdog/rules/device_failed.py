"""A device failed in hardware: it fell off the bus, or its memory has uncorrectable errors.

What hangs
    The rank on that device, or it ends with a CUDA error that blames an innocent call; all others
    in the next collective.

How it shows
    The kernel's log has an Xid of the hardware (48, 62-64, 74, 79, 92, 94, 95, 119, 120, 140, 154),
    `GPU has fallen off the bus`, or `nvidia-smi` cannot reach the device any more.

What to do
    Take the node out of the job, restart without it, and have the device tested (drain the node,
    reset or power-cycle it, read `nvidia-bug-report`). The job's code is not at fault.

Not to be confused with
    Xid 13, 31, 43 and 45, which a bug of the program causes as well.

Source
    https://github.com/rwth-i6/returnn/issues/1486
    https://docs.nvidia.com/deploy/xid-errors/index.html
"""

from __future__ import annotations

from typing import Final

from watchdog.evidence import LogEvent
from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation
from watchdog.verdict import errors, verdict_of

CAUSE_CLASS: Final = "other"

_HARDWARE = frozenset(
    ["48", "62", "63", "64", "74", "79", "92", "94", "95", "119", "120", "140", "154"]
)
_SAID = (
    r"fallen off the bus|[Uu]ncorrectable ECC|Unable to determine the device handle"
    r"|GPU (?:is lost|requires reset)|amdgpu.{0,60}GPU reset begin"
)


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    codes = [e for e in situation.evidence.log_events if _is_of_hardware(e)]
    said = codes or list(situation.log(_SAID))
    state = verdict_of(situation).state
    if not said or state not in ("hung", "crashed"):
        return None
    error = errors.fatal_error(situation)
    failed = error is not None and "CUDA" in error.text
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if failed or (codes and _is_ours(situation, codes[0])) else "possible",
        "A device failed in hardware.",
        [*(quoted(e) for e in said[:2]), *([quoted(error)] if error is not None else [])],
    )


def _is_of_hardware(event: LogEvent) -> bool:
    return event.kind == "gpu_xid" and event.fields.get("xid") in _HARDWARE


def _is_ours(situation: Situation, event: LogEvent) -> bool:
    """Whether the process that the kernel names is one of the job's."""
    pid = event.fields.get("xid_pid", "")
    return pid.isdigit() and int(pid) in {p.pid for p in situation.evidence.processes}
