"""Everybody who is described waits, and for long: hung, whoever is to blame."""

from __future__ import annotations

from watchdog.evidence import Process
from watchdog.situation import Situation
from watchdog.verdict.duration import lasted
from watchdog.verdict.groups import phrase
from watchdog.verdict.judgement import Judgement, names_of
from watchdog.waits.patterns import WaitKind

_WAITING: tuple[WaitKind, ...] = (
    "lock",
    "rpc",
    "collective",
    "rendezvous",
    "store",
    "file_wait",
    "device_sync",
    "paused_memory",
)
"""Waits that end from outside. An idle process may wait for ever, and nothing is wrong."""

IDLE_POWER = 0.35
"""Share of its limit that a device draws at most while its kernels only poll."""


def everybody_waits(situation: Situation) -> Judgement | None:
    """No member but idle engines does anything else than wait, and the files tell that it lasts."""
    idle = situation.doing("idle", among=situation.engines)
    members = (*situation.trainers, *(p for p in situation.engines if p not in idle))
    described = tuple(p for p in members if situation.with_stack(p))
    waiting = situation.doing(*_WAITING, among=described)
    polling = spins(situation, described)
    if any(situation.moving(p) for p in described):
        return None
    if len(waiting) < max(len(described), 1) and not polling:
        return None
    if not polling and not lasted(situation):
        return None
    first = (waiting or described)[0]
    reason = f"{names_of(waiting or described)}: {phrase(situation.wait(first))}, and nobody works."
    return Judgement("hung", reason)


def spins(situation: Situation, described: tuple[Process, ...]) -> bool:
    """Whether all wait for their devices, and those are busy at idle power: kernels that poll."""
    told = [
        e
        for e in situation.evidence.log_events
        if e.kind == "gpu_spinning"
        and float(e.fields["power_w"]) <= IDLE_POWER * float(e.fields["limit_w"])
    ]
    on_device = [p for p in described if _synchronizes(p)]
    return bool(told) and len(on_device) > 1 and len(on_device) == len(described)


def _synchronizes(process: Process) -> bool:
    sample = process.stacks[-1]
    return any(
        frame.function.lower().endswith("synchronize")
        for thread in sample.threads[:1]
        for frame in thread.frames[:4]
    )
