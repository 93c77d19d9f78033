"""An adapter is unloaded while requests still count as its users, and the unload never ends.

What hangs
    The engine in its unload; the trainer rank that asked for it in `ray.get` or HTTP; the other
    ranks in the next barrier.

How it shows
    The last control line of the engine is `Start unload Lora adapter` and no line tells of its
    end. Requests with n > 1 were served before: each counts once up and n times down, or the
    other way round, so that the counter never comes to zero. Frames: `unload_lora_adapter`,
    `wait_for_unload`, `wait_for_zero`.

What to do
    Load the new adapter under the same name (upsert) instead of unloading, or upgrade SGLang to a
    version that counts parallel samples once. Restart the engine: it will not recover.

Not to be confused with
    missing_backup_lora_colocate, which has the same flags but a rank in the weight read; an
    unload that waits for a paused request, which ends when generation is resumed.

Source
    https://github.com/sgl-project/sglang/issues/36894
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import engines
from watchdog.signs.answers import finding, quoted, quotes, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "lock_deadlock"
FLAGS = ("lora_rank", "n_samples_per_prompt", "n_samples_per_eval_prompt")


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    for history in situation.engine_histories:
        call = history.open_call
        if call is None or call.op != "unload_lora":
            continue
        frames = situation.at(
            r"unload_lora|_send_to_colocated|_send_lora", among=situation.evidence.processes
        )
        several = situation.log(r"'n': ([2-9]|\d\d)|n_samples_per")
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely" if not frames else "confirmed",
            "An engine began to unload an adapter and never finished.",
            [
                quoted(call.event),
                *(seen(situation, p) for p in frames[:3]),
                *quotes(several, 1),
            ],
        )
    stuck = situation.at(
        r"unload_lora_adapter|wait_for_unload|wait_for_zero", among=situation.engines
    )
    still = [p for p in stuck if situation.moving(p) is not True]
    if still and engines.callers(situation):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "An engine is in the unload of an adapter.",
            [seen(situation, p) for p in still],
        )
    return None
