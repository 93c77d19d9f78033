"""An engine answered a control call with an error, and nobody looked at the answer.

What hangs
    Whoever waits for the effect of the call: a new weight version, a resumed engine, a member of
    the update group.

How it shows
    A 4xx or 5xx answer, or `Failed to update parameter`, to a control call that was not repeated
    successfully, and no exception on the trainer. The engine itself is idle and healthy.

What to do
    Check every status; fail the sync on the trainer with the engine's own text; resume the engine
    on the way out.

Not to be confused with
    flush_refused, where the call is repeated; an engine that died.

Source
    https://github.com/allenai/open-instruct/pull/1532
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import crash, engines, peers
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "engine_rpc_stuck"

_IN_UPDATE = r"update_weight|load_weights|weight_loader|receive_weights"
_GAVE_UP = re.compile(r"zmq\.error\.Again|Resource temporarily unavailable|[Tt]imed? ?out|Timeout")


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if crash.crashed(situation):
        return _unseen_by_the_sender(situation)
    if not peers.hung(situation):
        return None
    for history in situation.engine_histories:
        failed = [c for c in history.failures if c.op != "flush"]
        if not failed:
            continue
        name = f"engine {history.index}" if history.index is not None else "an engine"
        idle = not history.generates and history.open_call is None
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely" if idle else "possible",
            f"{name} answered {failed[-1].op} with an error.",
            [quoted(failed[-1].event)],
        )
    return None


def _unseen_by_the_sender(situation: Situation) -> Finding | None:
    """An engine failed in its update first; the sender gave up waiting for its answer later."""
    first = crash.first_error(situation, _IN_UPDATE)
    if first is None or not engines.wrote(situation, first):
        return None
    gave_up = [
        e
        for e in situation.evidence.log_events
        if e.pid != first.pid
        and e.kind == "traceback"
        and _GAVE_UP.search(f"{e.fields.get('exception_full', '')}: {e.text}")
        and situation.logs.is_later(e, first)
    ]
    if not gave_up:
        return None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely",
        "An engine failed in its update, and the sender waited for its answer in vain.",
        [quoted(first), quoted(gave_up[0])],
    )
