"""Counters that go on say that nothing hangs, whatever a single stack looks like."""

from __future__ import annotations

from watchdog.situation import Situation, lines
from watchdog.situation.counting import (
    MAX_MISSED,
    MIN_ALLOWED_S,
    Counting,
    counting_to_the_end,
    said_at_s,
    usual_pause_s,
)
from watchdog.situation.pace import duration
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
        return _goes_on(situation, line)
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


def _goes_on(situation: Situation, line: str) -> Judgement | None:
    """Health, if the log still spoke when somebody looked; a pause alone is neither sign."""
    said_s, look_s = said_at_s(situation.evidence)[-1], situation.observed_at_s[-1]
    pause_s = look_s - said_s
    if pause_s > max(MAX_MISSED * usual_pause_s(situation.evidence), MIN_ALLOWED_S):
        return None
    if pause_s < -MIN_ALLOWED_S:
        return Judgement(
            "healthy",
            f"The training went on after the look at {lines.clock(look_s)}, to the end of the log"
            f" at {lines.clock(said_s)}: {line}.",
        )
    return Judgement("healthy", f"The training goes on: {line}.")


def ordinary_progress(situation: Situation) -> str:
    """Up to when a log tells of ordinary progress, and what would tell more; "" if it does not."""
    if situation.evidence.origin != "files" or situation.logs.first_time_out is not None:
        return ""
    own = [c for c in counting_to_the_end(situation.evidence) if c.is_of_training]
    if not own or situation.logs.errors:
        return ""
    latest = max(own, key=lambda c: c.last.time_s or 0.0)
    last, said_s = latest.last, said_at_s(situation.evidence)[-1]
    looks = [t for t in situation.observed_at_s if t > said_s]
    after = (
        f"the look at {lines.clock(looks[-1])} fell into a pause of {duration(looks[-1] - said_s)}"
        if looks
        else "no later look shows whether it goes on"
    )
    return (
        f"Ordinary progress up to {lines.clock(said_s)} in {last.file}; {after}. The last step"
        f" that it counts is `{last.text.strip()[:100]}` ({latest.pace}). A second copy of the log"
        " with the time at which it was made, or two stacks of every rank 30 s apart, would"
        " settle it."
    )


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
