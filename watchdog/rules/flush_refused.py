"""An engine refuses to flush its cache because requests are pending that will never finish.

What hangs
    The owner of the call (rank 0) in `flush_cache`, which is tried again once a second; the
    others in the gloo barrier behind it. After about a minute the owner raises.

How it shows
    `Cache not flushed because there are pending requests` again and again with the same counts.
    Requests queued and none running: the pause retracted them. Requests running, their number
    constant: they are stuck. `/flush_cache` is answered 400.

What to do
    Abort or drain before the flush: pause mode `abort`, or resume, wait for the queue to empty
    and pause again. Do not combine `--pause-generation-mode retract` with a fully asynchronous
    rollout.

Not to be confused with
    engine_left_paused, where nothing is refused; the first sixty seconds of a legal retry.

Source
    https://github.com/radixark/miles/pull/1497
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Confidence, Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "engine_rpc_stuck"
FLAGS = ("pause_generation_mode", "fully_async")


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    for history in situation.engine_histories:
        refused = history.refused_flush
        if len(refused) < 3 or history.last("flush") is not refused[-1]:
            continue
        counts = {
            (c.event.fields.get("queued"), c.event.fields.get("running")) for c in refused[-3:]
        }
        constant = len({c for c in counts if c != (None, None)}) <= 1
        raised = crash.first_error(situation, r"[Ff]lush")
        sure: Confidence = "confirmed" if constant and (raised or len(refused) >= 10) else "likely"
        name = f"engine {history.index}" if history.index is not None else "an engine"
        return finding(
            __name__,
            CAUSE_CLASS,
            sure,
            f"{name} refused {len(refused)} flushes in a row with requests pending.",
            [quoted(refused[-1].event), *([quoted(raised)] if raised else [])],
        )
    raised = crash.first_error(situation, r"flushing cache|Flush cache failed")
    if raised:
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "The flush of an engine's cache was given up.",
            [quoted(raised)],
        )
    return None
