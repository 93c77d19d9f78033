"""What a judge says, before it is completed with groups and ranks."""

from __future__ import annotations

from dataclasses import dataclass, field

from watchdog.evidence import LogEvent, Process
from watchdog.findings import Culprit, State
from watchdog.situation import Situation


@dataclass(frozen=True)
class Judgement:
    """One judge's answer.

    Attributes:
        state: See `State`.
        reason: One or two sentences.
        culprits: At the end of every chain of waits.
        chain: The waits that lead to them, outermost first.
        progress: For `slow`.
    """

    state: State
    reason: str
    culprits: tuple[Culprit, ...] = ()
    chain: tuple[str, ...] = field(default=())
    progress: str = ""


def accused(situation: Situation, process: Process, why: str, where: str = "") -> Culprit:
    """A culprit from a process of the evidence."""
    return Culprit(
        process=process.key,
        where=where or situation.wait(process).where or process.status_detail,
        why=why,
        rank=process.rank if process.role == "trainer" else None,
        engine=process.engine,
        pid=process.pid,
        host=process.host,
    )


def accused_by_log(event: LogEvent, why: str, where: str, pid: int | None = None) -> Culprit:
    """A culprit that only a log line names."""
    pid = pid if pid is not None else event.pid
    if event.engine is not None:
        key = f"engine {event.engine}"
    elif event.rank is not None:
        key = f"rank {event.rank}"
    else:
        key = _unknown_member(event, pid)
    return Culprit(
        process=key,
        where=where,
        why=why,
        rank=event.rank,
        engine=event.engine,
        pid=pid,
        host=event.host,
    )


def _unknown_member(event: LogEvent, pid: int | None) -> str:
    """A name for somebody of whom no more than a line is known."""
    if pid is None:
        place = event.host or event.file
        return f"a process of {place}" if place else "a process"
    return f"{event.host}:{pid}" if event.host else f"pid {pid}"


def unaccounted(situation: Situation) -> tuple[int, ...]:
    """Trainer ranks that should be there and of which nothing is known."""
    known = {process.rank for process in situation.trainers}
    size = situation.world_size
    if size is None:
        size = max((rank for rank in known if rank is not None), default=-1) + 1
    return tuple(rank for rank in range(size) if rank not in known)


def name_of(process: Process) -> str:
    """How a sentence names a process: `rank 3`, `engine 1 worker 0`, `pid 88111 (title)`."""
    if process.role == "trainer" and process.rank is not None:
        return f"rank {process.rank}"
    if process.engine is not None:
        worker = f" worker {process.worker}" if process.worker is not None else ""
        return f"engine {process.engine}{worker}"
    return (
        process.key
        if process.pid is None or str(process.pid) in process.key
        else f"{process.key} (pid {process.pid})"
    )


def names_of(processes: tuple[Process, ...]) -> str:
    """Several of them, ranks as ranges: `ranks 0-2, 4`."""
    ranks = sorted(p.rank for p in processes if p.role == "trainer" and p.rank is not None)
    words = [rank_range(ranks)] if ranks else []
    words += [name_of(p) for p in processes if p.role != "trainer" or p.rank is None]
    return ", ".join(words)


def rank_range(ranks: list[int]) -> str:
    """`rank 3`, `ranks 0-2, 4`."""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"


def waiting_for(waiting: tuple[Process, ...], what: str, whom: str) -> str:
    """One link of a chain: `ranks 0-1 wait in barrier for rank 2`."""
    verb = "waits" if len(waiting) == 1 else "wait"
    place = f" in {what}" if what not in ("", "no answer") else ""
    return f"{names_of(waiting)} {verb}{place} for {whom}"
