"""Counters that go on say that nothing hangs, whatever a single stack looks like."""

from __future__ import annotations

from watchdog.situation import Situation
from watchdog.situation.counting import Counting
from watchdog.situation.situation import WAITING_TOGETHER
from watchdog.verdict import odd_ranks
from watchdog.verdict.duration import SILENT_S
from watchdog.verdict.judgement import Judgement, accused, name_of, names_of, waiting_for


def counting(situation: Situation) -> Judgement | None:
    """A counter goes on: the training's own steps are health, parts of a transfer are slowness."""
    live = tuple(c for c in situation.counting if not _stands_since(situation, c))
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
    ) or tuple(
        p
        for p in situation.engines
        if p.engine == chosen.last.engine and situation.wait(p).kind not in WAITING_TOGETHER
    )
    culprits = tuple(
        accused(situation, p, f"{name_of(p)} works: {chosen.pace}") for p in working[:2]
    )
    chain = (waiting_for(waiting, "", names_of(working)),) if waiting and working else ()
    return Judgement("slow", f"It counts on: {line}.", culprits, chain, progress=chosen.pace)


def _stands_since(situation: Situation, counter: Counting) -> bool:
    """Whether steps are counted no more, although the next may not be due for long.

    A trainer that is seen twice at the same place after the last step, minutes apart, while
    others wait for it, says more than the interval of the steps.
    """
    last_s = counter.last.time_s
    if not counter.is_of_steps or last_s is None or not odd_ranks.waiting_together(situation):
        return False
    for process in situation.trainers:
        times = [s.taken_at_s for s in process.stacks if s.taken_at_s is not None]
        still = situation.movements[process.key].moving is False and len(times) > 1
        if still and times[0] > last_s and times[-1] - times[0] > SILENT_S:
            return True
    return False
