"""What the watchdog of the run said in the log, where the log is all that is at hand."""

from __future__ import annotations

import re
from typing import cast

from watchdog.evidence import LogEvent
from watchdog.findings import Culprit, State
from watchdog.situation import Situation, lines
from watchdog.verdict import errors
from watchdog.verdict.judgement import Judgement

_TOLD = "watchdog_verdict"
_RANK = re.compile(r"rank (\d{1,6})$")
_ENGINE = re.compile(r"engine (\d{1,6})\b")
_OVER = ("watchdog_recovered", "worker_group_restart")


def told_by_watchdog(situation: Situation) -> Judgement | None:
    """A stall that the watchdog of the run reported and that did not end by itself.

    It saw the stacks that a log lacks. What failed before it spoke outranks it; how ranks ended
    after it is a consequence.
    """
    told = last_words(situation)
    if told is None:
        return None
    first = errors.fatal_error(situation)
    if first is not None and not situation.logs.is_later(first, told):
        return None
    fields = told.fields
    words = f"The watchdog of the run reported: {fields['headline'].rstrip('.')}"
    reason = lines.with_source(words, told)
    if "cause" in fields:
        reason += f"; cause {fields['cause'].rstrip('.')}"
    if "report" in fields:
        reason += f"; its report lies in {fields['report']}"
    culprits = (_culprit(told),) if "culprit" in fields else ()
    return Judgement(cast(State, fields["state"]), f"{reason}.", culprits)


def last_words(situation: Situation) -> LogEvent | None:
    """The last verdict of the run's watchdog, if that is a stall that went on to the end.

    `None` as well where stacks are at hand: they are judged by themselves.
    """
    if any(process.stacks for process in situation.evidence.processes):
        return None
    told = [e for e in situation.evidence.log_events if e.kind == _TOLD]
    if not told or told[-1].fields.get("state") not in ("hung", "slow"):
        return None
    over = [
        e for e in situation.evidence.log_events if e.kind in _OVER or lines.SYNC_END.search(e.text)
    ]
    return None if any(situation.logs.is_later(e, told[-1]) for e in over) else told[-1]


def _culprit(told: LogEvent) -> Culprit:
    fields = told.fields
    name = fields["culprit"]
    rank, engine = _RANK.match(name), _ENGINE.match(name)
    pid = fields.get("culprit_pid")
    return Culprit(
        process=name,
        where=fields.get("where", ""),
        why=lines.with_source(fields.get("why", "") or "named by the watchdog of the run", told),
        rank=int(rank[1]) if rank else None,
        engine=int(engine[1]) if engine else None,
        pid=int(pid) if pid else None,
        host=fields.get("culprit_host", ""),
    )
