"""A group that cannot form because somebody gives an address that others cannot reach."""

from __future__ import annotations

import re

from watchdog.evidence import LogEvent, Process
from watchdog.situation import Situation, lines
from watchdog.verdict.judgement import Judgement, accused, accused_by_log, waiting_for

_BIND = re.compile(r"\b[Bb]ind(?:s|ing)?(?: to)? (?P<path>ipc://[^\s,;()'\"]+)")
_CONNECT = re.compile(r"\b[Cc]onnect(?:s|ing)?(?: to)? (?P<path>ipc://[^\s,;()'\"]+)")


def unreachable_address(situation: Situation) -> Judgement | None:
    """Somebody builds a group, and a line tells of a loopback or missing interface."""
    builders = building(situation)
    said = loopback_lines(situation)
    refused = refused_address(situation, said)
    tried = builders or refused or situation.log(r"new_group|connectFullMesh|init_process_group")
    if not said or not tried or worked_before(situation, said):
        return None
    event = refused or said[0]
    process = situation.trainer(event.rank) if event.rank is not None else None
    line = event.text.splitlines()[0][:240]
    if process is None and event.pid is not None:
        process = next((p for p in situation.trainers if p.pid == event.pid), None)
    why = lines.with_source("it advertises an address that other hosts cannot reach", event)
    where = line if refused else f"new_group (gloo): {line}"
    culprit = (
        accused(situation, process, why, where) if process else accused_by_log(event, why, where)
    )
    waiting = tuple(p for p in builders if p is not process)
    chain = (
        (waiting_for(waiting, situation.wait(waiting[0]).operation, culprit.process),)
        if waiting
        else ()
    )
    # A refusal raises; a time-out is what the wait itself ends in.
    raised = refused is not None and any(
        e.kind == "traceback" and lines.PEER_LOST.search(e.text)
        for e in situation.evidence.log_events
    )
    reason = f"{culprit.process} advertises an unreachable address."
    return Judgement("crashed" if raised else "hung", reason, (culprit,), chain)


def worked_before(situation: Situation, said: tuple[LogEvent, ...]) -> bool:
    """Whether a sync ended well after the last of these lines: the groups did form."""
    done = situation.log(lines.SYNC_END)
    return any(all(situation.logs.is_later(end, e) for e in said) for end in done)


def refused_address(situation: Situation, said: tuple[LogEvent, ...]) -> LogEvent | None:
    """The line that names an address to which a peer tried to connect in vain."""
    refused = situation.log(r"[Cc]onnection refused|No route to host|[Cc]onnection timed out")
    for event in said:
        address = event.fields.get("address", "")
        if address and any(
            re.search(rf"(?<![\d.]){re.escape(address)}(?![\d.])", e.text)
            for e in refused
            if e.pid != event.pid or e.host != event.host
        ):
            return event
    return None


def building(situation: Situation) -> tuple[Process, ...]:
    """Processes of any role that are building a group."""
    return situation.doing("rendezvous", among=situation.evidence.processes)


def loopback_lines(situation: Situation) -> tuple[LogEvent, ...]:
    """Lines that tell of an address on the loopback or a virtual interface."""
    return situation.log(lines.LOOPBACK)


def bound_twice(situation: Situation) -> tuple[tuple[LogEvent, ...], tuple[LogEvent, ...]]:
    """Who binds one local socket with others, and who connects to a socket that nobody binds."""
    binds = [(e, m["path"]) for e in situation.log(_BIND) if (m := _BIND.search(e.text))]
    calls = [(e, m["path"]) for e in situation.log(_CONNECT) if (m := _CONNECT.search(e.text))]
    owners: dict[str, dict[int | None, LogEvent]] = {}
    for event, path in binds:
        owners.setdefault(path, {}).setdefault(event.pid, event)
    shared = tuple(e for found in owners.values() if len(found) > 1 for e in found.values())
    return shared, tuple(e for e, path in calls if path not in owners)


def socket_nobody_binds(situation: Situation) -> Judgement | None:
    """Receivers share one socket, and senders connect to sockets that nobody listens on."""
    shared, lost = bound_twice(situation)
    if not shared or not lost:
        return None
    line = lost[0].text.splitlines()[0][:200]
    return Judgement(
        "hung",
        f"{len(shared)} receivers bind one socket, and nobody binds that of `{line.strip()}`.",
    )
