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

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "engine_rpc_stuck"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
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
