"""Processes of this host that belong to the job and are no trainer rank, such as engines.

They are found by the name of the run in their environment, which children inherit, and by the
process tree. What they are is read off their command lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from watchdog.capture import bounded, proc
from watchdog.capture.target import Part, Target
from watchdog.evidence import Process, Role
from watchdog.masking import mask_argv

_ENGINE = re.compile(r"sglang|vllm|rollout\.engine|engine_server|launch_server|api_server", re.I)
_INDEX = re.compile(r"(?:--engine[-_](?:index|id|rank)|--replica[-_]rank)[ =](\d{1,5})\b", re.I)
# What the watchdog itself started, and what looks at processes as it does.
_OURS = re.compile(
    r"watchdog[./](?:sentinel|speaker)|miles-watchdog|py-spy|miles-watchdog-sentinel"
)
_MAX_PROCESSES = 64


@dataclass(frozen=True)
class Found:
    """One process of the job.

    Attributes:
        pid: Its process id.
        parent: Its parent's.
        ticks: When it started (clock ticks since boot).
        words: Its command line; [] of a zombie.
        role: What it is.
        key: Its key in the evidence.
        engine: Index of the engine that it is, or belongs to.
        worker: Number among the workers of its engine.
    """

    pid: int
    parent: int
    ticks: int
    words: tuple[str, ...]
    role: Role = "other"
    key: str = ""
    engine: int | None = None
    worker: int | None = None


def job_processes(run: str, ranks: Iterable[int], host: str) -> tuple[Found, ...]:
    """Find them; engines first, then their workers, then the rest.

    Args:
        run: Name of the run, as `MILES_WATCHDOG_RUN` gives it to all processes of the job.
        ranks: Process ids of the trainer ranks, which are left out, and what belongs to them
            is not.
        host: Name of this host, for the keys.
    """
    ranks = set(ranks)
    everything = _processes()
    marked = _marked(everything, run)
    ancestors = {pid for rank in ranks for pid in _ancestors(everything, rank)}
    found = []
    for pid, one in everything.items():
        line = " ".join(one.words)
        above = _ancestors(everything, pid)
        belongs = pid in marked or bool((ranks | marked) & set(above))
        if belongs and pid not in ranks and not _OURS.search(line):
            is_above = pid in ancestors and pid in marked
            found.append(replace(one, role="launcher") if is_above else one)
    # A child of the watchdog's own children is not the job's either.
    ours = {pid for pid, one in everything.items() if _OURS.search(" ".join(one.words))}
    found = [one for one in found if not ours & set(_ancestors(everything, one.pid))]
    return _named(found, everything, host)[:_MAX_PROCESSES]


def as_evidence(found: Found, part: Part, host: str) -> Process:
    """One of them with what was captured of it."""
    return Process(
        key=found.key,
        role=found.role,
        engine=found.engine,
        worker=found.worker,
        pid=found.pid,
        host=host,
        command=part.command or " ".join(mask_argv(found.words)),
        status=part.status,
        status_detail=part.status_detail,
        stacks=part.stacks,
        activity=part.activity,
        environment=part.environment,
        sockets=part.sockets,
        identified_by="environment, process tree and command line",
        gaps=part.gaps,
    )


def target(found: Found) -> Target:
    """It as something to capture."""
    return Target(found.pid, found.key)


def _processes() -> dict[int, Found]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := proc.stat_fields(f"/proc/{name}/stat")):
            try:
                words = tuple(proc.command(int(name)))
            except OSError:
                words = ()
            parent, ticks = int(fields[1]), int(fields[19])
            found[int(name)] = Found(int(name), parent, ticks, words)
    return dict(sorted(found.items()))


def _marked(everything: Mapping[int, Found], run: str) -> set[int]:
    """Those with the name of the run in their environment, as far as that may be read."""
    mark = f"MILES_WATCHDOG_RUN={run}"
    jobs = {pid: partial(_has, pid, mark) for pid, one in everything.items() if one.words}
    # Reading it waits for a lock of the process, which a process in trouble may hold.
    outcomes = bounded.results(jobs, timeout_s=1.0)
    return {pid for pid, has_it in outcomes.items() if has_it is True}


def _has(pid: int, mark: str) -> bool:
    try:
        return mark in proc.read_text(f"/proc/{pid}/environ").split("\0")
    except OSError:
        return False


def _ancestors(everything: Mapping[int, Found], pid: int) -> list[int]:
    above: list[int] = []
    while (one := everything.get(pid)) is not None and one.parent not in above:
        pid = one.parent
        above.append(pid)
    return above


def _named(found: list[Found], everything: Mapping[int, Found], host: str) -> tuple[Found, ...]:
    looks_like = {one.pid for one in found if _ENGINE.search(" ".join(one.words))}
    # The topmost is the engine; what runs below it, whatever it is called, is its worker.
    tops = [
        one
        for one in found
        if one.pid in looks_like and not looks_like & set(_ancestors(everything, one.pid))
    ]
    given = {one.pid: _INDEX.search(" ".join(one.words)) for one in tops}
    by_pid = {}
    for number, one in enumerate(tops):
        match = given[one.pid]
        index = int(match[1]) if match else number
        by_pid[one.pid] = replace(one, role="engine", engine=index, key=f"engine {index}")
    workers: list[Found] = []
    others: list[Found] = []
    for one in found:
        top = next((p for p in _ancestors(everything, one.pid) if p in by_pid), None)
        if top is not None:
            number = sum(each.engine == by_pid[top].engine for each in workers)
            key = f"{by_pid[top].key} worker {number}"
            engine = by_pid[top].engine
            workers.append(
                replace(one, role="engine_worker", engine=engine, worker=number, key=key)
            )
        elif one.pid not in by_pid:
            others.append(replace(one, key=f"{host}:{one.pid}"))
    engines = sorted(by_pid.values(), key=lambda one: one.engine or 0)
    return (*engines, *workers, *others)
