"""Parts to evidence: who is who, what came when, one process an entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from watchdog.evidence import Evidence, LogEvent, Process, ProcessStatus, Role, StackSample
from watchdog.intake.identity import Identities, identities_of
from watchdog.intake.merging import merged_evidence
from watchdog.intake.parts import Parts, ProcessPart, RawEvent, Who
from watchdog.intake.times import Calendar

MAX_SAMPLES = 8
_ROLE_ORDER: tuple[Role, ...] = (
    "trainer",
    "engine",
    "engine_worker",
    "driver",
    "launcher",
    "other",
)
_STATUS_ORDER: tuple[ProcessStatus, ...] = (
    "dead",
    "zombie",
    "stopped",
    "uninterruptible",
    "running",
    "unknown",
)


def evidence_of(parts: Parts) -> Evidence:
    """One evidence of all parts, with evidence that other tools of ours wrote merged in."""
    moments = [part.moment for part in parts.processes] + [event.moment for event in parts.events]
    calendar = Calendar(moment for moment in moments if moment is not None)
    identities = identities_of(parts)
    processes = _processes(parts, identities, calendar)
    events = tuple(
        _event(event, identities, calendar)
        for event in sorted(parts.events, key=lambda event: (event.file, event.line))
    )
    for what, num in parts.dropped.items():
        parts.add_gap(f"further {what}", f"{num} more than are kept")
    evidence = Evidence(
        origin="files",
        processes=processes,
        world_size=_world_size(parts),
        framework="",
        log_events=events,
        flags=tuple(parts.flags),
        environment=dict(parts.environment),
        versions=dict(parts.versions),
        gaps=tuple(parts.gaps),
        notes=tuple(parts.notes),
    )
    evidence = merged_evidence([*parts.evidence, evidence])
    return replace(evidence, framework=evidence.framework or framework_of(evidence))


def framework_of(evidence: Evidence) -> str:
    """The training framework, by the files in stacks and tracebacks; "" if none is known.

    Frames count by the package they are in; a package that only appears below another's (TRL
    calling vLLM) is no framework of its own here.
    """
    counts: dict[str, int] = {}
    texts = [
        frame.file
        for process in evidence.processes
        for sample in process.stacks
        for thread in sample.threads
        for frame in thread.frames
    ]
    texts += [event.fields.get("frames", "") for event in evidence.log_events]
    texts += [process.command for process in evidence.processes]
    texts += [event.text[:300] for event in evidence.log_events[:2000]]
    texts += [flag.origin for flag in evidence.flags[:50]]
    for text in texts:
        for name, marks in _FRAMEWORKS:
            if any(mark in text for mark in marks):
                counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: counts[name]) if counts else ""


_FRAMEWORKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("miles", ("miles/backends/", "miles/utils/", "miles/ray/")),
    ("slime", ("slime/backends/", "slime/utils/", "slime/ray/")),
    ("vime", ("vime/backends/", "vime/utils/")),
    ("verl", ("verl/", "verl.trainer")),
    ("skyrl", ("skyrl/", "skyrl_train", "skyrl.")),
    (
        "trl",
        ("trl/trainer/", "trl/extras/", "trl/experimental/", "trl.experimental", "trl/scripts"),
    ),
    ("nemo-rl", ("nemo_rl/", "run_grpo.py")),
    ("prime-rl", ("prime_rl/", "prime_rl.", "PRIME-RL")),
    ("openrlhf", ("openrlhf/",)),
    ("areal", ("areal/",)),
    ("rlinf", ("rlinf/",)),
    ("open-instruct", ("open_instruct/",)),
)


def _processes(parts: Parts, identities: Identities, calendar: Calendar) -> tuple[Process, ...]:
    groups: dict[tuple[object, ...], list[tuple[Who, ProcessPart]]] = {}
    for part in parts.processes:
        who = _resolved(part.who, part.file_who, identities, part)
        groups.setdefault(_group_key(who, part), []).append((who, part))
    built = [_process(group, calendar) for group in groups.values()]
    built.sort(key=_process_order)
    return _unique_keys(built)


def _resolved(who: Who, file_who: Who, identities: Identities, part: ProcessPart) -> Who:
    known = identities.of(who)
    if who.pid is None:
        known = known.or_else(file_who)
    if known.rank is None and known.local_rank is not None and known.role in (None, "trainer"):
        known = replace(known, rank=known.local_rank)
    if known.role is None and known.rank is not None:
        known = replace(known, role="trainer")
    if known.role is None and (known.engine is not None or known.worker is not None):
        known = replace(known, role="engine")
    is_engine = known.role in ("engine", "engine_worker")
    if is_engine and known.engine is None and identities.single_engine and known.rank is None:
        known = replace(known, engine=0, by=(*known.by, "the only engine in the files"))
    return known


def _group_key(who: Who, part: ProcessPart) -> tuple[object, ...]:
    if who.pid is not None:
        return ("pid", who.pid, who.rank, who.engine)
    if who.rank is not None or who.engine is not None:
        return ("index", who.role, who.rank, who.engine, who.replica, who.worker)
    return ("file", part.file, who.host)


def _process(group: Sequence[tuple[Who, ProcessPart]], calendar: Calendar) -> Process:
    who = group[0][0]
    for other, _ in group[1:]:
        who = who.or_else(other)
    ordered = sorted(
        (part for _, part in group),
        key=lambda part: (calendar.epoch_s(part.moment) or 0.0, part.order),
    )
    stacks = [
        replace(part.stack, taken_at_s=calendar.epoch_s(part.moment))
        for part in ordered
        if part.stack is not None
    ]
    activity = [
        replace(part.activity, taken_at_s=calendar.epoch_s(part.moment))
        for part in ordered
        if part.activity is not None
    ]
    worst = min((part for part in ordered), key=lambda part: _STATUS_ORDER.index(part.status))
    role = who.role or "other"
    return Process(
        key=process_key(who, role),
        role=role,
        rank=who.rank if role in ("trainer", "other") else None,
        engine=who.engine if role in ("engine", "engine_worker") else None,
        worker=who.worker if role == "engine_worker" else None,
        pid=who.pid,
        host=who.host,
        command=who.command,
        status=worst.status,
        status_detail=worst.status_detail,
        stacks=tuple(_first_and_last(stacks)),
        activity=tuple(activity[-MAX_SAMPLES:]),
        environment={k: v for part in ordered for k, v in part.environment.items()},
        versions={k: v for part in ordered for k, v in part.versions.items()},
        sockets=tuple(socket for part in ordered for socket in part.sockets),
        collectives=tuple(item for part in ordered for item in part.collectives),
        identified_by="; ".join(who.by[:6]),
        gaps=tuple(part.gap for part in ordered if part.gap is not None)[:20],
    )


def _first_and_last(samples: list[StackSample]) -> list[StackSample]:
    if len(samples) <= MAX_SAMPLES:
        return samples
    half = MAX_SAMPLES // 2
    return [*samples[:half], *samples[-half:]]


def process_key(who: Who, role: Role) -> str:
    """The name of a process in the report: `rank 3`, `engine 1 worker 0`, `driver` …"""
    if role == "trainer":
        return f"rank {who.rank}" if who.rank is not None else f"trainer pid {who.pid}"
    if role in ("engine", "engine_worker"):
        words = [f"engine {who.engine}" if who.engine is not None else "engine"]
        if who.engine is None and who.rank is not None:
            words = [f"engine of rank {who.rank}"]
        if who.replica is not None:
            words.append(f"replica {who.replica}")
        if role == "engine_worker":
            words.append(f"worker {who.worker}" if who.worker is not None else f"pid {who.pid}")
        return " ".join(words)
    if role in ("driver", "launcher"):
        return role
    return f"pid {who.pid}" if who.pid is not None else "process"


def _process_order(process: Process) -> tuple[int, int, int, int]:
    index = process.rank if process.rank is not None else process.engine
    return (
        _ROLE_ORDER.index(process.role),
        index if index is not None else 1 << 30,
        process.worker if process.worker is not None else -1,
        process.pid or 0,
    )


def _unique_keys(processes: Sequence[Process]) -> tuple[Process, ...]:
    seen: dict[str, int] = {}
    unique: list[Process] = []
    for process in processes:
        key = process.key
        if key in seen:
            suffix = process.pid if process.pid is not None else seen[key] + 1
            key = f"{process.key} ({'pid ' if process.pid is not None else ''}{suffix})"
        seen[process.key] = seen.get(process.key, 0) + 1
        while key in seen and key != process.key:
            key += "'"
        seen.setdefault(key, 1)
        unique.append(replace(process, key=key))
    return tuple(unique)


def _event(event: RawEvent, identities: Identities, calendar: Calendar) -> LogEvent:
    who = identities.of(event.who)
    rank, engine = who.rank, who.engine
    if rank is None and who.local_rank is not None and who.role in (None, "trainer"):
        rank = who.local_rank
    is_engine = who.role in ("engine", "engine_worker")
    if is_engine and engine is None and rank is None and identities.single_engine:
        engine = 0
    fields = dict(event.fields)
    if is_engine and who.worker is not None:
        fields.setdefault("worker", str(who.worker))
    if is_engine and who.replica is not None:
        fields.setdefault("replica", str(who.replica))
    return LogEvent(
        kind=event.kind,
        text=event.text,
        file=event.file,
        line=event.line,
        time_s=calendar.epoch_s(event.moment),
        rank=rank if not is_engine or engine is None else None,
        engine=engine,
        pid=who.pid,
        host=who.host,
        fields=fields,
    )


def _world_size(parts: Parts) -> int | None:
    flags = {flag.name: flag.value for flag in parts.flags}
    nodes, gpus = flags.get("actor_num_nodes"), flags.get("actor_num_gpus_per_node")
    if isinstance(nodes, int) and isinstance(gpus, int):
        return nodes * gpus
    nodes, gpus = flags.get("trainer.nnodes"), flags.get("trainer.n_gpus_per_node")
    if isinstance(nodes, int) and isinstance(gpus, int):
        return nodes * gpus
    for size, _ in parts.world_sizes:
        return size
    value = parts.environment.get("WORLD_SIZE", "")
    return int(value) if value.isdigit() and len(value) < 7 else None
