"""A member of the update group is gone, and the others wait for it.

What hangs
    Rank 0 in the broadcast or the call to that engine; the others in the barrier behind it; the
    driver in `ray.get` of the trainers.

How it shows
    An engine or one of its workers is dead in the process list or the actor table, or its log
    ends with a crash line. `/health` may still be answered 200 by the server in front of it.

What to do
    Find out why it died: its own log first. Reconcile the members before every sync, and wait for
    both sides' futures together so that the engine's error surfaces.

Not to be confused with
    An engine that lives and does not answer; an engine that was taken down after a time-out.

Source
    https://github.com/NVIDIA-NeMo/RL/pull/3472
"""

from __future__ import annotations

from typing import Final

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding, quoted, quotes
from watchdog.situation import Situation
from watchdog.verdict import deaths, verdict_of

CAUSE_CLASS: Final = "engine_dead"
IS_GENERAL: Final = True


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if not crash.crashed(situation):
        return None
    gone = [p for p in crash.dead_processes(situation) if p.role in ("engine", "engine_worker")]
    if gone:
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed",
            f"{gone[0].key} is gone.",
            [line for process in gone for line in _ends(situation, process)],
            culprits=gone,
        )
    named = [
        c
        for c in verdict_of(situation).culprits
        if c.engine is not None or _served(situation, c.pid) or _is_engine(situation, c.process)
    ]
    own = [e for e in situation.evidence.log_events if e.kind == "engine_dead"]
    died = [e for e in (*situation.logs.deaths, *own) if crash.earlier(situation, e)]
    if named and died:
        return finding(
            __name__, CAUSE_CLASS, "likely", f"{named[0].process} is gone.", [quoted(died[0])]
        )
    return None


def _ends(situation: Situation, process: Process) -> list[str]:
    state = f"{process.key}: {process.status} {process.status_detail}".strip()
    return [state, *quotes(deaths.lines_of_end(situation, process), 3)]


def _is_engine(situation: Situation, key: str) -> bool:
    return any(process.key == key for process in situation.engines)


def _served(situation: Situation, pid: int | None) -> bool:
    """Whether the process wrote an engine's statistics or took control calls."""
    kinds = ("engine_load", "engine_control")
    return any(e.pid == pid and e.kind in kinds for e in situation.evidence.log_events if pid)
