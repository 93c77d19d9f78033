"""The engines' side: the end of the chain where trainers wait for an answer."""

from __future__ import annotations

from watchdog.evidence import LogEvent, Process
from watchdog.findings import Culprit
from watchdog.situation import Situation, lines
from watchdog.situation.engine_history import EngineHistory
from watchdog.situation.situation import WAITING_TOGETHER
from watchdog.verdict.duration import lasted
from watchdog.verdict.groups import class_key, phrase
from watchdog.verdict.judgement import Judgement, accused, name_of, names_of, waiting_for
from watchdog.waits.patterns import WaitKind

_OWN_FAULT: tuple[WaitKind, ...] = (
    "weight_read",
    "memory_switch",
    "lock",
    "file_wait",
    "file_io",
    "slow_work",
    "cleanup",
)
"""Where a trainer does one of these, the engines are not to blame."""


_IN_A_CALL: tuple[WaitKind, ...] = (
    "engine_step",
    "device_sync",
    "lock",
    "queue",
    "sleep",
    "unknown",
)
"""What an engine does that has taken a call and does not come back from it."""


def stuck_engine(situation: Situation) -> Judgement | None:
    """An engine or one of its workers that shows by itself that it is stuck."""
    if situation.doing(*_OWN_FAULT):
        return _open_call(situation) if _waits_for_rollouts(situation) else None
    for look in (_odd_worker, _stuck_step, _open_call):
        judgement = look(situation)
        if judgement is not None:
            return judgement
    return None


def _waits_for_rollouts(situation: Situation) -> bool:
    """Whether the only fault of the trainers is to wait for the file that rollouts would write."""
    waiting = situation.doing("file_wait")
    faults = situation.doing(*_OWN_FAULT)
    return (
        bool(waiting)
        and len(waiting) == len(faults)
        and any(h.is_paused and h.holds_requests for h in situation.engine_histories)
    )


def worker_parties(situation: Situation) -> tuple[tuple[Process, ...], ...]:
    """The processes of each engine that have a stack, workers where there are any."""
    found: dict[int | None, list[Process]] = {}
    for process in situation.engines:
        if situation.with_stack(process):
            found.setdefault(process.engine, []).append(process)
    parties = []
    for members in found.values():
        workers = [p for p in members if p.role == "engine_worker"]
        parties.append(tuple(workers if len(workers) > 1 else members))
    return tuple(parties)


def odd_workers(situation: Situation) -> tuple[tuple[Process, ...], tuple[Process, ...]]:
    """Workers of one engine that do not wait where their peers wait, and those peers.

    Idle ones, if the others build a group; ones that already wait for the next request, if the
    others still wait for peers (worker 0 hears of requests otherwise, and is never meant); in a
    step of its own, if the others are in the barrier behind it; in another collective, if the
    others take the weights.
    """
    for party in worker_parties(situation):
        if len(party) < 2:
            continue
        together = situation.doing(*WAITING_TOGETHER, among=party)
        idle = situation.doing("idle", among=party)
        if together and idle and any(situation.wait(p).kind == "rendezvous" for p in together):
            return idle, together
        early = tuple(p for p in idle if situation.wait(p).passes(r"^broadcast"))
        if 0 < len(early) * 2 < len(together) and lasted(situation):
            return early, together
        alone = tuple(p for p in party if p not in together and p not in idle)
        if together and alone and len(alone) <= len(together):
            return alone, together
        classes = _classes(situation, together)
        if len(classes) == 2:
            updating = [
                c for c in classes if situation.at(r"update_weight|receive_weights|load_weights", c)
            ]
            if len(updating) == 1:
                other = next(c for c in classes if c is not updating[0])
                return other, updating[0]
            if len(classes[0]) < len(classes[1]):
                return classes[0], classes[1]
    return (), ()


def _classes(situation: Situation, members: tuple[Process, ...]) -> list[tuple[Process, ...]]:
    found: dict[tuple[object, ...], list[Process]] = {}
    for process in members:
        found.setdefault(class_key(situation.wait(process)), []).append(process)
    return [tuple(c) for c in sorted(found.values(), key=len)]


def _odd_worker(situation: Situation) -> Judgement | None:
    odd, peers = odd_workers(situation)
    if not odd:
        return None
    what = situation.wait(peers[0])
    culprits = tuple(
        accused(
            situation,
            p,
            f"{p.key} is {phrase(situation.wait(p))} while its peers are {phrase(what)}",
        )
        for p in odd
    )
    chain = (
        *_callers(situation, odd[0]),
        waiting_for(peers, what.operation, names_of(odd)),
    )
    return Judgement(
        "hung",
        f"{names_of(odd)}: {phrase(situation.wait(odd[0]))}; the others are {phrase(what)}.",
        culprits,
        chain,
    )


def _stuck_step(situation: Situation) -> Judgement | None:
    """All workers of an engine in a step that does not end, while a trainer waits for it."""
    callers = situation.doing("rpc", "await")
    if not callers and situation.trainers:
        return None
    for party in worker_parties(situation):
        stuck = situation.doing(*_IN_A_CALL, among=party)
        if (
            not stuck
            or any(situation.moving(p) for p in stuck)
            or not _is_accepted(situation, stuck)
        ):
            continue
        engine = stuck[0]
        why = f"{names_of(stuck)}: {phrase(situation.wait(engine))}"
        where = " | ".join(dict.fromkeys(situation.wait(p).where for p in stuck))
        culprit = accused(situation, engine, why, where)
        return Judgement(
            "hung",
            f"{names_of(stuck)}: {phrase(situation.wait(engine))}, and answers nobody.",
            (culprit,),
            _callers(situation, engine),
        )
    return None


def _is_accepted(situation: Situation, stuck: tuple[Process, ...]) -> bool:
    """A single sample of a working engine proves nothing; a worker in a device wait does."""
    if any(situation.moving(p) is False for p in stuck) or situation.evidence.stall is not None:
        return True
    return all(situation.wait(p).passes(r"synchronize|_to_list|wait|Synchronize") for p in stuck)


def _open_call(situation: Situation) -> Judgement | None:
    for history in situation.engine_histories:
        found = complaint(situation, history)
        if found is None:
            continue
        where, why = found
        culprit = _accused(situation, history, where, why)
        return Judgement(
            "hung",
            f"{culprit.process}: {why}.",
            (culprit,),
            _callers(situation, None, history.index),
        )
    return None


def complaint(situation: Situation, history: EngineHistory) -> tuple[str, str] | None:
    """Where and why an engine is stuck, by its own lines; `None` where nothing is left open."""
    waiting: tuple[WaitKind, ...] = ("rpc", "await", "engine_step", "file_wait")
    driver = situation.doing("rpc", "await", among=situation.drivers)
    waits_for_engine = bool(situation.doing(*waiting) or driver) or not situation.trainers
    if history.open_call is not None and history.open_call.op == "pause" and history.frozen:
        event = history.open_call.event
        still = f"{_quoted(event)} has no end: {_quoted(history.frozen[-1])}"
        return ("pause_generation", still) if waits_for_engine else None
    if history.open_call is not None and history.open_call.op in ("unload_lora", "load_lora"):
        event = history.open_call.event
        return f"{history.open_call.op}_adapter", f"{_quoted(event)} has no end"
    if len(history.refused_flush) >= 3 and history.last("flush") is history.refused_flush[-1]:
        last = _quoted(history.refused_flush[-1].event)
        return "flush_cache", f"refused {len(history.refused_flush)} flushes, last {last}"
    if (
        history.is_paused
        and history.holds_requests
        and waits_for_engine
        and not in_update(situation)
    ):
        pause = history.last("pause")
        begun = f"pause_generation: {pause.event.text[:120]}" if pause else "pause_generation"
        return begun, f"was paused and never resumed: {_quoted(history.holds_requests[-1])}"
    return None


def _quoted(event: LogEvent) -> str:
    return lines.with_source(f"`{event.text[:160]}`", event)


def in_update(situation: Situation) -> bool:
    """Whether a trainer is still inside the sync that paused the engine."""
    inside = [p for p in situation.trainers if p.position is not None and p.position.section]
    return bool(
        inside or situation.at(r"update_weights|sync_weights|send_weights|broadcast_weights")
    )


def _accused(situation: Situation, history: EngineHistory, where: str, why: str) -> Culprit:
    engine = next(
        (p for p in situation.engines if p.engine == history.index and p.role == "engine"),
        next((p for p in situation.engines if p.engine == history.index), None),
    )
    if engine is not None:
        stack = situation.wait(engine).where
        return accused(situation, engine, why, f"{where}; {stack}" if stack else where)
    pid = history.events[-1].pid if history.index is None else None
    name = f"engine {history.index}" if history.index is not None else "the engine"
    return Culprit(name, where, why, engine=history.index, pid=pid)


def _callers(
    situation: Situation, engine: Process | None, index: int | None = None
) -> tuple[str, ...]:
    callers = situation.doing("rpc", "await") or situation.doing(
        "rpc", "await", among=situation.drivers
    )
    if not callers:
        return ()
    name = name_of(engine) if engine is not None else f"engine {index}"
    waiting = tuple(p for p in situation.doing(*WAITING_TOGETHER) if p not in callers)
    chain = (
        [waiting_for(waiting, situation.wait(waiting[0]).operation, names_of(callers))]
        if waiting
        else []
    )
    wait = situation.wait(callers[0])
    what = f"{wait.operation} ({wait.peer})" if wait.peer else phrase(wait)
    return (*chain, waiting_for(callers, what, name))
