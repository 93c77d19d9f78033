"""The trainer asks the engine to resume a memory tag that was never released.

What hangs
    The sync, after retries of the resume call; the other ranks in the barrier.

How it shows
    `KeyError: 'weights'` in the engine's `resume_memory_occupation`, with LoRA adapters that are
    not merged and a cache that is freed.

What to do
    Resume only the tags that were released; merge the adapters or keep the base resident on both
    sides.

Not to be confused with
    incomplete_wake, where a tag stays asleep.

Source
    https://github.com/verl-project/verl/issues/7289
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "config_invalid"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    event = next(
        (
            e
            for e in situation.logs.errors
            if re.search(r"KeyError: '?(weights|kv_cache|cuda_graph)", e.text + str(e.fields))
        ),
        None,
    )
    if event is None or not re.search(
        r"resume|wake",
        event.text + str(event.fields) + str(situation.log(r"resume_memory|wake_up")),
    ):
        return None
    return finding(
        __name__, CAUSE_CLASS, "likely", "A tag was resumed that is not paused.", [quoted(event)]
    )
