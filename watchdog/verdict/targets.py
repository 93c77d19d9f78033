"""Whom a call goes to, and who is at the end of a chain of waits."""

from __future__ import annotations

import re

from watchdog.evidence import Process
from watchdog.situation import Situation
from watchdog.verdict.duration import lasted
from watchdog.verdict.groups import phrase
from watchdog.verdict.judgement import Judgement, accused, name_of, names_of, waiting_for

_ENGINE = re.compile(r"engine[ _]?(\d+)\b")
_URL_PORT = re.compile(r"https?://[\w.\-\[\]:]*?:(\d{2,5})\b")


def called_engine(situation: Situation, caller: Process) -> Process | None:
    """The engine that this process waits for, `None` where nothing tells.

    By the connection, the mark, the arguments, or because there is only one.
    """
    engines = [p for p in situation.engines if p.role == "engine"] or list(situation.engines)
    by_port = {_port(s.local): p for p in engines for s in p.sockets if s.state == "LISTEN"}
    remote = [_port(s.remote) for s in caller.sockets if s.remote and s.state == "ESTABLISHED"]
    hints = _hints(situation, caller)
    for port in (*[p for text in hints for p in _URL_PORT.findall(text)], *remote):
        if port in by_port:
            return by_port[port]
    for text in hints:
        for index in _ENGINE.findall(text):
            found = next((p for p in engines if p.engine == int(index)), None)
            if found is not None:
                return found
    indices = {p.engine for p in engines}
    return engines[0] if engines and len(indices) == 1 else None


def _hints(situation: Situation, caller: Process) -> list[str]:
    wait = situation.wait(caller)
    hints = [value for frame in (*wait.frames, *wait.path) for value in frame.locals.values()]
    if caller.position is not None:
        hints.append(caller.position.phase)
        hints += [mark.detail for mark in reversed(caller.position.history[-8:])]
    return hints


def _port(address: str) -> str:
    return address.rsplit(":", 1)[-1]


def end_of_chain(
    situation: Situation, callers: tuple[Process, ...], waiting: tuple[Process, ...]
) -> Judgement | None:
    """The called engine where it is known, else the caller itself."""
    if not lasted(situation):
        return None
    caller = callers[0]
    wait = situation.wait(caller)
    chain = (
        [waiting_for(waiting, situation.wait(waiting[0]).operation, names_of(callers))]
        if waiting
        else []
    )
    engine = called_engine(situation, caller) if wait.kind != "queue" else None
    if engine is None:
        culprits = tuple(
            accused(
                situation,
                p,
                f"{name_of(p)} is {phrase(situation.wait(p))}; whom it calls is not told",
            )
            for p in callers
        )
        return Judgement("hung", f"{names_of(callers)}: {phrase(wait)}.", culprits, tuple(chain))
    chain.append(f"{name_of(caller)} waits in {wait.operation} for {name_of(engine)}")
    where = f"{wait.where} -> {situation.wait(engine).where}".rstrip(" ->")
    why = f"{name_of(caller)} is {phrase(wait)} and {name_of(engine)} does not answer"
    culprit = accused(situation, engine, why, where)
    return Judgement(
        "hung",
        f"{name_of(engine)} does not answer {name_of(caller)} ({wait.peer or wait.operation}).",
        (culprit,),
        tuple(chain),
    )
