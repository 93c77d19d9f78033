"""Equivalence classes: who does the same thing."""

from __future__ import annotations

from watchdog.evidence import Process
from watchdog.findings import Group
from watchdog.situation import Situation
from watchdog.waits import Wait

_WORDS = {
    "collective": "waiting in {op}{group}",
    "rendezvous": "building a group in {op}",
    "store": "waiting for a key of the store",
    "rpc": "waiting for an answer ({op} {peer})",
    "weight_read": "reading weights in {op}",
    "paused_memory": "blocked in a read of paused memory ({op})",
    "memory_switch": "pausing or resuming memory ({op})",
    "lock": "waiting for a lock ({op})",
    "gil_held": "holding the GIL in {op}",
    "prompt": "at the prompt of a {op}",
    "file_wait": "waiting for a file ({op})",
    "file_io": "in file input or output ({op})",
    "slow_work": "working: {op}",
    "compute": "computing: {op}",
    "device_sync": "waiting for its device ({op})",
    "engine_step": "in an engine step ({op})",
    "queue": "waiting for another thread ({op})",
    "await": "awaiting a coroutine",
    "sleep": "sleeping",
    "cleanup": "cleaning up ({op})",
    "idle": "idle ({op})",
    "stopped": "stopped",
    "dead": "dead ({op})",
    "no_answer": "no stack known",
    "unknown": "in {op}",
}


def phrase(wait: Wait) -> str:
    """What somebody who waits like this does, one phrase."""
    is_told = "group" in wait.group or " of rank" in wait.group
    group = f" ({'' if is_told else 'group '}{wait.group})" if wait.group else ""
    if wait.sequence is not None:
        group += f" number {wait.sequence}"
    if wait.num_bytes is not None:
        group += f" of {wait.num_bytes} bytes"
    text = _WORDS[wait.kind].format(
        op=wait.operation or "unknown code", group=group, peer=wait.peer
    )
    return text.replace(" )", ")").strip()


def class_key(wait: Wait) -> tuple[object, ...]:
    """What two processes of one class have in common."""
    return (
        wait.kind,
        wait.operation,
        wait.group,
        wait.sequence,
        wait.num_bytes,
        tuple(f.function for f in wait.path[:4]) or wait.site,
    )


def groups_of(situation: Situation) -> tuple[Group, ...]:
    """All processes, each in one group, larger groups first; trainers apart from the rest."""
    classes: dict[tuple[object, ...], list[Process]] = {}
    for process in situation.evidence.processes:
        key = (process.role, *class_key(situation.wait(process)))
        classes.setdefault(key, []).append(process)
    ordered = sorted(classes.values(), key=lambda members: -len(members))
    return tuple(_group(situation, tuple(members)) for members in ordered)


def _group(situation: Situation, members: tuple[Process, ...]) -> Group:
    wait = situation.wait(members[0])
    # Of who is gone or was never heard of there are no two samples to compare.
    is_seen = wait.kind not in ("dead", "no_answer")
    moving = {situation.moving(process) for process in members}
    ranks = sorted(p.rank for p in members if p.role == "trainer" and p.rank is not None)
    return Group(
        processes=tuple(process.key for process in members),
        ranks=tuple(ranks),
        doing=phrase(wait),
        where=wait.where if is_seen or wait.where != wait.operation else "",
        moving=True if True in moving else (False if moving == {False} and is_seen else None),
    )
