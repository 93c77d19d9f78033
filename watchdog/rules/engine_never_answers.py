"""An engine lives and does not answer the call that a trainer waits for.

What hangs
    The owner of the call in HTTP, `ray.get` or a socket; the other trainers in the barrier behind
    it.

How it shows
    The call is older than any legal retry, the engine process exists, its handler stands in a
    wait or its log ends with the call's begin. No time-out is set on most of these calls, so none
    fires.

What to do
    Give every call a finite deadline and abort requests before the flush. Look at the engine's
    handler frame: it names what it waits for.

Not to be confused with
    The normal picture of the first and the last phase of a sync, which is young; an engine that
    died; an engine that works slowly, whose samples differ.

Source
    https://github.com/NVIDIA-NeMo/RL/pull/4019
    https://github.com/radixark/miles/pull/847
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Culprit, Finding, Refutation
from watchdog.signs import crash, peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation
from watchdog.verdict import (
    duration,
    engines,
    verdict_of,
)

CAUSE_CLASS: Final = "engine_rpc_stuck"
IS_GENERAL: Final = True


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if not peers.hung(situation) or situation.doing("weight_read", "paused_memory"):
        return None
    named = [c for c in verdict_of(situation).culprits if c.engine is not None]
    callers = situation.doing("rpc", among=situation.trainers or situation.drivers)
    if not callers and named:
        callers = situation.doing("rpc", "await", among=situation.drivers)
    if not callers or not duration.lasted(situation):
        return None
    engine = next(
        (p for p in crash.named_culprits(situation) if p.role in ("engine", "engine_worker")), None
    )
    if not named:
        return finding(
            __name__,
            CAUSE_CLASS,
            "possible",
            "A trainer waits for the answer of an engine.",
            [seen(situation, p) for p in callers[:3]],
        )
    split = bool(engines.odd_workers(situation)[0])
    handler = (
        engine is not None
        and not split
        and situation.wait(engine).kind
        not in (
            "idle",
            "unknown",
            "no_answer",
            "collective",
        )
    )
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if handler else "possible",
        f"{named[0].process} does not answer.",
        [*(seen(situation, p) for p in callers[:3]), _told(named[0])],
    )


def _told(culprit: Culprit) -> str:
    is_named = culprit.why.startswith(culprit.process)
    return culprit.why if is_named else f"{culprit.process}: {culprit.why}"
