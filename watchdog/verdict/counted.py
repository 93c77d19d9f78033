"""Counters that go on say that nothing hangs, whatever a single stack looks like."""

from __future__ import annotations

from watchdog.situation import Situation
from watchdog.verdict import odd_ranks
from watchdog.verdict.judgement import Judgement, accused, name_of, names_of, waiting_for


def counting(situation: Situation) -> Judgement | None:
    """A counter goes on: the training's own steps are health, parts of a transfer are slowness."""
    live = situation.counting
    if not live:
        return None
    own = [c for c in live if c.is_of_training and c.last.engine is None]
    chosen = own[-1] if own else live[-1]
    line = f"`{chosen.last.text.strip()[:120]}` ({chosen.pace})"
    waiting = odd_ranks.waiting_together(situation)
    in_order = chosen.is_of_steps or not waiting
    if own and in_order and not situation.doing("file_wait", "file_io", "lock"):
        return Judgement("healthy", f"The training goes on: {line}.")
    working = tuple(
        p for p in situation.trainers if p not in waiting and situation.with_stack(p)
    ) or tuple(p for p in situation.engines if p.engine == chosen.last.engine)
    culprits = tuple(
        accused(situation, p, f"{name_of(p)} works: {chosen.pace}") for p in working[:2]
    )
    chain = (waiting_for(waiting, "", names_of(working)),) if waiting and working else ()
    return Judgement("slow", f"It counts on: {line}.", culprits, chain, progress=chosen.pace)
