"""An engine generates although only a part of its memory was woken.

What hangs
    The engine, at its first request after the wake.

How it shows
    The wake named the tag `weights` only, requests came before `kv_cache` was woken, and an
    illegal memory access or a dead engine follows.

What to do
    Wake all tags before generating; gate the scheduler on it.

Not to be confused with
    engine_step_during_sleep, where the request was older than the sleep.

Source
    https://github.com/vllm-project/vllm-omni/issues/4473
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import engines
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "paused_memory_read"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    for history in situation.engine_histories:
        wakes = [c for c in history.controls if c.op == "wake"]
        if not wakes or history.last("sleep", "wake") is not wakes[-1]:
            continue
        partial = re.search(
            r"tags=\[?'?weights'?\]?(?!.*kv_cache)",
            wakes[-1].event.text + wakes[-1].event.fields.get("query", ""),
        )
        faults = engines.during(
            history, "wake", r"illegal memory access|EngineDead|misaligned|ILLEGAL_ADDRESS"
        )
        if partial and faults:
            return finding(
                __name__,
                CAUSE_CLASS,
                "likely",
                "An engine failed after only its weights were woken.",
                [quoted(wakes[-1].event), quoted(faults[0])],
            )
    return None
