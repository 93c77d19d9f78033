"""A host of which nothing is heard, while the ranks of the others wait for its ranks."""

from __future__ import annotations

import time

from watchdog.evidence import Process
from watchdog.situation import Situation
from watchdog.verdict.judgement import Judgement, accused, names_of, waiting_for
from watchdog.verdict.odd_ranks import waiting_together
from watchdog.waits.process import is_unheard


def silent_host(situation: Situation) -> Judgement | None:
    """Name the ranks of silent hosts, where all others wait together."""
    silent = silent_hosts(situation)
    culprits = tuple(process for processes in silent.values() for process in processes)
    waiting = waiting_together(situation)
    if not culprits or not waiting or len(culprits) + len(waiting) < len(situation.trainers):
        return None
    return Judgement(
        "hung",
        " ".join(f"{said(situation, host, silent[host])}." for host in silent),
        tuple(accused(situation, p, f"its host is silent: {p.status_detail}") for p in culprits),
        (waiting_for(waiting, situation.wait(waiting[0]).operation, names_of(culprits)),),
    )


def silent_hosts(situation: Situation) -> dict[str, tuple[Process, ...]]:
    """Host, "" for an unknown one, to its ranks, of hosts none of whose ranks was heard of."""
    hosts: dict[str, list[Process]] = {}
    for process in situation.trainers:
        hosts.setdefault(process.host, []).append(process)
    return {
        host: tuple(processes)
        for host, processes in hosts.items()
        if all(is_unheard(process) for process in processes)
    }


def said(situation: Situation, host: str, processes: tuple[Process, ...]) -> str:
    """A sentence without its full stop: which ranks a silent host has, and since when it is."""
    ranks = names_of(processes)
    if not host:
        return f"The host of {ranks} is silent: it could not be reached"
    text = f"Host {host} with {ranks} is silent"
    ages_s = [p.position.heartbeat_age_s for p in processes if p.position is not None]
    known_s = [age_s for age_s in ages_s if age_s is not None]
    if not known_s:
        return text
    text += f": its last sign of life came {min(known_s):.0f} s before this"
    if situation.evidence.collected_at_s is not None:
        at = time.gmtime(situation.evidence.collected_at_s - min(known_s))
        text += f", at {time.strftime('%H:%M:%S', at)} UTC"
    return text
