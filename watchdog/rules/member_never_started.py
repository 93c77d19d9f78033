"""Some ranks were never started, and the others wait for them at the first store.

What hangs
    The ranks that did start, in `init_process_group`, until the store's time-out.

How it shows
    `Timed out … waiting for clients. 8/16 clients joined`, or the store's barrier with fewer
    workers than its world size, after a line of the launcher: `Task launch … failed on node`,
    `execve(): … No such file or directory`, `ImagePullBackOff`, `ssh: connect to host`.

What to do
    Look at the launcher's lines of the nodes that are missing: path of the program there, image,
    permissions, node health. Only then raise a time-out.

Not to be confused with
    loopback_address and virtual_interface, where the ranks run and do not find the store.

Source
    https://github.com/OpenRLHF/OpenRLHF/issues/1040
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation
from watchdog.verdict import launch

CAUSE_CLASS: Final = "group_rendezvous"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    missing, failed = launch.missing_members(situation), launch.launch_failure(situation)
    if not missing:
        return None
    counts = missing[0].fields
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if failed is not None else "possible",
        f"Only {counts['joined']} of {counts['world_size']} members came.",
        [*([quoted(failed)] if failed is not None else []), quoted(missing[0])],
    )
