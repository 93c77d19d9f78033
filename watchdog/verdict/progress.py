"""Is anything moving? Moving is slow, not hung."""

from __future__ import annotations

import re

from watchdog.evidence import Process
from watchdog.findings import Culprit
from watchdog.situation import Situation
from watchdog.situation.pace import pace_of
from watchdog.situation.situation import WAITING_TOGETHER
from watchdog.verdict import targets
from watchdog.verdict.groups import phrase
from watchdog.verdict.judgement import Judgement, accused, name_of, names_of, waiting_for

_ENDED_WELL = re.compile(r"\bCOMPLETED\s+0:0\b")
"""The scheduler's own word: nothing that a job prints itself is the end of all its ranks."""

_ENDED_BADLY = re.compile(
    r"\b(FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY)\b|Watchdog caught collective"
)


def movers(situation: Situation) -> tuple[Process, ...]:
    """Trainers that move and are in no collective: those whom the others wait for."""
    return tuple(
        p
        for p in situation.trainers
        if situation.moving(p) and situation.wait(p).kind not in WAITING_TOGETHER
    )


def moving(situation: Situation) -> Judgement | None:
    """Somebody moves while the others wait for it, or everybody moves in spite of an alarm."""
    found = movers(situation) or moving_engine(situation)
    if not found:
        travelling = tuple(p for p in situation.trainers if situation.moving(p))
        if not travelling or len(travelling) < len(situation.trainers):
            return None
        found = travelling
    culprits = tuple(_moving_one(situation, p) for p in found)
    waiting = tuple(p for p in situation.trainers if p not in found)
    chain = (waiting_for(waiting, "", names_of(found)),) if waiting else ()
    how = situation.movements[found[0].key].how
    reason = f"{names_of(found)}: {phrase(situation.wait(found[0]))}, and it moves ({how})."
    return Judgement("slow", reason, culprits, chain, progress=_pace(situation, found) or how)


def _moving_one(situation: Situation, process: Process) -> Culprit:
    how = situation.movements[process.key].how
    if not situation.with_stack(process):
        return accused(situation, process, f"{name_of(process)} moves: {how}", "seen in its log")
    doing = phrase(situation.wait(process))
    return accused(situation, process, f"{name_of(process)} is {doing}, and moves: {how}")


def _pace(situation: Situation, found: tuple[Process, ...]) -> str:
    """The counter that the moving processes write, where they write one."""
    pids, ranks = {p.pid for p in found} - {None}, {p.rank for p in found} - {None}
    own = [e for e in situation.evidence.log_events if e.pid in pids or e.rank in ranks]
    return pace_of(own)


def moving_engine(situation: Situation) -> tuple[Process, ...]:
    """The engine that trainers wait for, or its workers, if they move; may be empty."""
    for caller in situation.doing("rpc"):
        engine = targets.called_engine(situation, caller)
        if engine is None:
            continue
        family = tuple(p for p in situation.engines if p.engine == engine.engine)
        found = tuple(p for p in family if situation.moving(p) and situation.wait(p).kind != "idle")
        if found:
            return found
    return _generating_for_driver(situation)


def _generating_for_driver(situation: Situation) -> tuple[Process, ...]:
    """Engines that generate while the driver waits for rollouts and no trainer has work."""
    waiting = situation.doing("rpc", among=situation.drivers)
    seen = tuple(p for p in situation.trainers if situation.with_stack(p))
    if not situation.at(r"generat|rollout", among=waiting):
        return ()
    if len(situation.doing("idle", among=seen)) < len(seen):
        return ()
    return tuple(p for p in situation.engines if p.role == "engine" and situation.moving(p))


def healthy(situation: Situation) -> Judgement | None:
    """No alarm, and every trainer that was looked at twice computes and moves."""
    if situation.evidence.stall is not None or not situation.trainers:
        return None
    looked_at = [p for p in situation.trainers if situation.with_stack(p)]
    computing = situation.doing("compute", among=tuple(looked_at))
    if (
        not looked_at
        or len(computing) < len(looked_at)
        or not all(situation.moving(p) for p in looked_at)
    ):
        return None
    if situation.logs.first_time_out is not None:
        return None
    return Judgement(
        "healthy",
        f"{names_of(tuple(looked_at))} computes and moves:"
        f" {situation.movements[looked_at[0].key].how}.",
    )


def finished(situation: Situation) -> Judgement | None:
    """The job has ended well, and what is said later complains that its store is gone."""
    events = situation.evidence.log_events
    if situation.evidence.stall is not None or situation.logs.deaths or situation.logs.errors:
        return None
    if any(situation.with_stack(p) for p in situation.evidence.processes):
        return None
    ended = [e for e in events if _ENDED_WELL.search(e.text)]
    if not ended or any(_ENDED_BADLY.search(e.text) for e in events):
        return None
    echo = [e for e in events if e.kind == "store_owner_gone"]
    if any(situation.logs.is_later(ended[-1], e) for e in echo if ended[-1].file == e.file):
        return None
    line = ended[-1].text.strip().splitlines()[0][:120]
    return Judgement("healthy", f"The job has ended by itself, with success: `{line}`.")
