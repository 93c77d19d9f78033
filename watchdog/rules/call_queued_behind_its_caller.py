"""A call is queued behind a running call of the same actor that cannot end before it.

What hangs
    The caller in `ray.get`, the actor in its running call, and whoever waits for either.

How it shows
    `ray list tasks` shows a call RUNNING and another one PENDING on the same actor; the running
    one waits for its peers or blocks the actor's event loop in `ray.get`; the caller waits for the
    pending one.

What to do
    Give the second call a concurrency group of its own, or skip it while the first one runs; in
    an async actor `await` the reference instead of `ray.get`.

Not to be confused with
    A call behind a slow one: the actor's stack moves, or little time has passed.

Source
    https://github.com/allenai/open-instruct/pull/1454
    https://github.com/rllm-org/rllm/issues/254
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation
from watchdog.verdict import actors

CAUSE_CLASS: Final = "lock_deadlock"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    found = actors.deaf(situation) or actors.queued_callers(situation)
    if not found or not situation.queued_calls or not peers.hung(situation):
        return None
    rows = {id(e): e for q in situation.queued_calls for e in (q.running, q.pending)}
    runners = {q.runner.key: q.runner for q in situation.queued_calls if q.runner is not None}
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        "A call waits behind a running call of the same actor, and that one waits as well.",
        [
            *(quoted(e) for e in list(rows.values())[:3]),
            *(seen(situation, p) for p in list(runners.values())[:1]),
            *(seen(situation, p) for p in found[:1] if p.key not in runners),
        ],
        culprits=found,
    )
