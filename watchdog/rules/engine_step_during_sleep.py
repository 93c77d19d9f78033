"""An engine was put to sleep while requests were running, and its step never finishes.

What hangs
    The workers of the engine, in the device-to-host copy of an unfinished step; the engine's loop
    and the trainer wait for them.

How it shows
    The last statistics before the sleep show running requests, no pause came before it, the
    workers stand in a step (`_bookkeeping_sync`, `_to_list`, `sample_tokens`), and weights were
    sent meanwhile. The loud variant: `illegal memory access` seconds after the sleep.

What to do
    Pause and drain (or abort) before the sleep, and wait until the engine says that it is idle.

Not to be confused with
    engine_never_answers; a pause whose end is missing.

Source
    https://github.com/vllm-project/vime/pull/168
    https://github.com/vllm-project/vllm/issues/28714
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import engines
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "paused_memory_read"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    for history in situation.engine_histories:
        sleep = history.last("sleep", "wake")
        if sleep is None or sleep.op != "sleep":
            continue
        running = history.ran_when("sleep") or 0
        paused = any(c.op == "pause" for c in history.controls[-40:] if c is not sleep)
        faults = engines.during(history, "sleep", r"illegal memory access|CUDA error")
        stuck = [
            p
            for p in engines.members(situation, "engine_step", "device_sync", "paused_memory")
            if history.index is None or p.engine == history.index
        ]
        if running and faults:
            return finding(
                __name__,
                CAUSE_CLASS,
                "confirmed",
                "An engine went to sleep with requests running and failed.",
                [quoted(sleep.event), quoted(faults[0])],
            )
        if running and stuck and not paused:
            return finding(
                __name__,
                CAUSE_CLASS,
                "confirmed",
                f"An engine went to sleep with {running} requests running.",
                [quoted(sleep.event), *(seen(situation, p) for p in stuck[:3])],
                culprits=stuck,
            )
        if stuck and situation.at(
            r"_to_list|_bookkeeping_sync|sample_tokens|execute_model|process_batch_result",
            among=tuple(stuck),
        ):
            return finding(
                __name__,
                CAUSE_CLASS,
                "likely",
                "Workers of a sleeping engine are in a step.",
                [quoted(sleep.event), *(seen(situation, p) for p in stuck[:3])],
                culprits=stuck,
            )
    return None
