"""Each sync loads a new version of the adapter and none is ever unloaded.

What hangs
    The load of an adapter, after tens of syncs that went well.

How it shows
    The engine's log counts more and more loads with other names and no unload; its memory grows;
    the call ends in a read time-out.

What to do
    Unload the previous version, or load under one name.

Not to be confused with
    lora_unload_waits_for_requests, where an unload is tried.

Source
    https://github.com/areal-project/AReaL/pull/1385
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "oom_or_killed"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    for history in situation.engine_histories:
        loads = [c for c in history.controls if c.op == "load_lora"]
        names = {c.event.fields.get("name", "") for c in loads} - {""}
        unloads = [c for c in history.controls if c.op == "unload_lora"]
        open_load = history.open_call is not None and history.open_call.op == "load_lora"
        if (
            len(names) >= 5
            and not unloads
            and (open_load or situation.at(r"load_lora", among=situation.evidence.processes))
        ):
            return finding(
                __name__,
                CAUSE_CLASS,
                "likely",
                f"{len(names)} versions of the adapter were loaded and none unloaded.",
                [quoted(loads[-1].event)],
            )
    return None
