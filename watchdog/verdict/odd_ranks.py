"""The odd one out among the trainers: who does not wait where the others wait."""

from __future__ import annotations

from watchdog.evidence import Process
from watchdog.situation import Situation
from watchdog.situation.situation import WAITING_TOGETHER
from watchdog.verdict import targets
from watchdog.verdict.duration import lasted, observed_to_last
from watchdog.verdict.groups import phrase
from watchdog.verdict.judgement import Judgement, accused, name_of, names_of, waiting_for
from watchdog.waits.patterns import WaitKind

SURE: tuple[WaitKind, ...] = ("stopped", "paused_memory", "gil_held")
"""What the kernel or the interpreter says leaves no room for another reading."""

SUSPICION: tuple[WaitKind, ...] = (
    "prompt",
    "weight_read",
    "memory_switch",
    "lock",
    "no_answer",
    "file_wait",
    "file_io",
    "slow_work",
    "store",
    "rendezvous",
    "rpc",
    "device_sync",
    "queue",
    "await",
    "cleanup",
    "sleep",
    "unknown",
    "compute",
    "engine_step",
    "idle",
)
"""Waits that nobody else can end come before waits for others."""

_ALONE = "does not wait where the others wait"


def blocked_for_sure(situation: Situation) -> Judgement | None:
    """Members that are stopped, or blocked in a page fault, or keep the GIL while they wait."""
    members = (*situation.trainers, *situation.engines)
    # Who was seen to move holds nobody up for good, whatever one look at it says.
    standing = tuple(p for p in members if not situation.moving(p))
    found = tuple(p for kind in SURE for p in situation.doing(kind, among=standing))
    if not found:
        return None
    culprits = tuple(
        accused(situation, p, f"{name_of(p)} is {phrase(situation.wait(p))}") for p in found
    )
    reason = "; ".join(f"{name_of(p)}: {phrase(situation.wait(p))}" for p in found[:4]) + "."
    return Judgement("hung", reason, culprits, _chain(situation, found))


def odd_ranks(situation: Situation) -> tuple[Process, ...]:
    """The most suspicious trainers that are in no collective, all of one kind; may be empty."""
    waiting = waiting_together(situation)
    odd = tuple(p for p in situation.trainers if p not in waiting and _is_known(situation, p))
    for kind in SUSPICION:
        found = situation.doing(kind, among=odd)
        if found:
            return found
    return ()


def waiting_together(situation: Situation) -> tuple[Process, ...]:
    """Trainers in a collective, on the host or on the device.

    A rank that synchronises its device in the function from which others call a collective has
    enqueued the same one and waits for it there.
    """
    inside = situation.doing(*WAITING_TOGETHER)
    functions = {f.function for p in inside for f in situation.wait(p).path[:2]}
    on_device = tuple(
        p
        for p in situation.doing("device_sync")
        if (path := situation.wait(p).path) and path[0].function in functions
    )
    return (*inside, *on_device)


def _is_known(situation: Situation, process: Process) -> bool:
    """A rank without any sample counts only where everybody was asked."""
    wait = situation.wait(process)
    if wait.kind not in ("no_answer", "unknown"):
        return True
    if situation.evidence.origin == "watchdog":
        return True
    return wait.kind == "unknown" and bool(wait.frames)


def odd_rank(situation: Situation) -> Judgement | None:
    """Name the odd ranks, or the end of the chain that begins at them."""
    found = odd_ranks(situation)
    if not found:
        return None
    waiting = tuple(p for p in waiting_together(situation) if p not in found)
    kind = situation.wait(found[0]).kind
    if kind in ("rpc", "await", "queue"):
        return targets.end_of_chain(situation, found, waiting)
    if not waiting and not lasted(situation):
        return None
    if kind == "idle" and not (waiting and lasted(situation)):
        return None
    if kind in ("compute", "engine_step") and not (waiting and observed_to_last(situation)):
        return None
    culprits = tuple(
        accused(situation, p, f"{name_of(p)} {_ALONE}: {_doing(situation, p)}") for p in found
    )
    reason = f"{names_of(found)} {_ALONE}: {_doing(situation, found[0])}."
    return Judgement("hung", reason, culprits, _chain(situation, found))


def _doing(situation: Situation, process: Process) -> str:
    """What it does; and that it left the section of the others by an exception, where it did."""
    text = phrase(situation.wait(process))
    place = process.position
    ends = [mark for mark in place.history if mark.kind == "section_end"] if place else []
    if place is None or place.section or not ends or "raised" not in ends[-1].detail:
        return text
    return f"{text}, after an exception ended its {ends[-1].name}"


def _chain(situation: Situation, found: tuple[Process, ...]) -> tuple[str, ...]:
    waiting = tuple(p for p in situation.trainers if p not in found)
    if not waiting:
        return ()
    operation = situation.wait(waiting[0]).operation
    return (waiting_for(waiting, operation, names_of(found)),)
