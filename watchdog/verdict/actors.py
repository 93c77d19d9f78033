"""Calls between actors that wait for each other."""

from __future__ import annotations

from watchdog.evidence import Process
from watchdog.situation import Situation
from watchdog.situation.queued_calls import method_of
from watchdog.verdict.duration import lasted
from watchdog.verdict.groups import phrase
from watchdog.verdict.judgement import Judgement, accused, name_of, names_of, waiting_for
from watchdog.waits import blocks_event_loop


def deaf(situation: Situation) -> tuple[Process, ...]:
    """Actors whose event loop waits in `ray.get` while a call of theirs is queued, or for long."""
    runners = [q.runner for q in situation.queued_calls if q.runner is not None]
    others = [p for p in situation.evidence.processes if p.role != "trainer"]
    candidates = others if lasted(situation) else runners
    distinct = {p.key: p for p in candidates}.values()
    return tuple(p for p in distinct if blocks_event_loop(p))


def deaf_actor(situation: Situation) -> Judgement | None:
    """An actor that blocks its own loop while all others wait for answers as well."""
    found = deaf(situation)
    described = [p for p in situation.evidence.processes if situation.with_stack(p)]
    closed = len(described) > 1 and all(situation.wait(p).kind == "rpc" for p in described)
    circle = any(q.runner in found and q.waits_for_itself for q in situation.queued_calls)
    if not found or not (closed or circle or lasted(situation)):
        return None
    culprits = tuple(
        accused(situation, p, f"{name_of(p)} waits in ray.get and hears no other call meanwhile")
        for p in found
    )
    calls = [q.pending.fields["name"] for q in situation.queued_calls if q.runner in found]
    others = tuple(p for p in described if p not in found)
    chain = (waiting_for(others, "ray.get", names_of(found)),) if others else ()
    behind = f", and {calls[0]} is queued behind it" if calls else ""
    reason = f"{names_of(found)} blocks its event loop in ray.get{behind}."
    return Judgement("hung", reason, culprits, chain)


def queued_callers(situation: Situation) -> tuple[Process, ...]:
    """Who waits in `ray.get` for calls that are queued behind a call that waits for its peers."""
    calls = situation.queued_calls
    waits_for_peers = [
        q
        for q in calls
        if q.runner is not None
        and situation.wait(q.runner).kind in ("engine_step", "collective", "rendezvous")
        and not situation.moving(q.runner)
    ]
    if not waits_for_peers or not lasted(situation):
        return ()
    running = {method_of(q.running) for q in calls}
    return tuple(
        p
        for p in situation.doing("rpc", among=situation.evidence.processes)
        if situation.wait(p).operation == "ray.get"
        and not running & {f.function for f in situation.wait(p).path}
    )


def queued_call(situation: Situation) -> Judgement | None:
    """A caller that waits for a call behind the one that it should have met."""
    found = queued_callers(situation)
    if not found:
        return None
    queued = next(q for q in situation.queued_calls if q.runner is not None)
    runner = queued.runner
    assert runner is not None
    pending, running = queued.pending.fields["name"], queued.running.fields["name"]
    culprits = tuple(
        accused(situation, p, f"{name_of(p)} waits for {pending}, queued behind {running}")
        for p in found
    )
    chain = (
        f"{name_of(runner)} is {phrase(situation.wait(runner))} and waits for the other side",
        waiting_for(found, "ray.get", f"{pending} behind it"),
    )
    reason = f"{names_of(found)}: waits for {pending}, which is queued behind {running}."
    return Judgement("hung", reason, culprits, chain)
