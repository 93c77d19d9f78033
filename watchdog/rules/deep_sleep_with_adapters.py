"""A level-2 sleep throws weights away that nothing can restore.

What hangs
    The engine, at the wake or at the first step after it.

How it shows
    `/sleep?level=2` with LoRA enabled, and a KeyError or a missing parameter in the sleep or wake
    path; or no update of the weights between wake and generation.

What to do
    Use level 1 where the weights are not reloaded; send all weights after a level-2 wake.

Not to be confused with
    A level-1 sleep, which keeps a host copy.

Source
    https://github.com/vllm-project/vllm/issues/48297
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation, lines

CAUSE_CLASS: Final = "missing_backup"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    for history in situation.engine_histories:
        sleeps = [c for c in history.controls if c.op == "sleep"]
        deep = [
            c
            for c in sleeps
            if "level=2" in c.event.text
            or c.event.fields.get("level") == "2"
            or "level=2" in c.event.fields.get("query", "")
        ]
        faults = [
            e
            for e in history.events
            if lines.is_error(e)
            and re.search(r"KeyError|Parameter|sleep|wake", e.text + str(e.fields))
        ]
        if deep and faults:
            return finding(
                __name__,
                CAUSE_CLASS,
                "likely",
                "A level-2 sleep lost weights that the engine still needs.",
                [quoted(deep[-1].event), quoted(faults[0])],
            )
    return None
