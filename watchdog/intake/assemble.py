"""Parts to evidence: who is who, what came when, one process an entry."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from watchdog.evidence import Evidence, LogEvent, Process, ProcessStatus, Role, StackSample
from watchdog.intake.identity import Identities, identities_of, label_of
from watchdog.intake.merging import merged_evidence
from watchdog.intake.parts import Parts, ProcessPart, RawEvent, Who
from watchdog.intake.stack_owner import is_of_trainer
from watchdog.intake.times import Calendar

MAX_SAMPLES = 8
MAX_OF_LOGS = 4_000
# Tables that list ranks or hosts without saying that a process of theirs was seen.
_NOT_SPEAKING = ("gpu_utilization", "host_interface", "host_name", "socket")
_FAILURES = ("traceback", "memory_saver_error", "cuda_oom")
_MEMBERS = ("trainer", "engine", "engine_worker")
_TRAINING_SCRIPT = re.compile(r"(?:train|grpo|ppo|rl|sft|sync_worker)\w*\.py\b")
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
    actors = [event.who.actor for event in parts.events if event.who.actor]
    return replace(evidence, framework=evidence.framework or framework_of(evidence, actors))


def framework_of(evidence: Evidence, actors: Sequence[str] = ()) -> str:
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
    texts += list(actors)
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
    ("verl", ("verl/", "verl.trainer", "WorkerDict", "vLLMHttpServer", "SGLangHttpServer")),
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
    for part in [*parts.processes, *_of_logs(parts, identities)]:
        who = _resolved(part.who, part.file_who, identities, part)
        groups.setdefault(_group_key(who, part), []).append((who, part))
    _join_without_pid(groups)
    built = [_process(group, calendar) for group in groups.values() if _tells(group)]
    built.sort(key=_process_order)
    return _unique_keys(built)


def _of_logs(parts: Parts, identities: Identities) -> list[ProcessPart]:
    """A part for every trainer and engine that only logs speak of.

    Without rank or index, one that wrote an error is worth a name as well.
    """
    found: dict[tuple[object, ...], ProcessPart] = {}
    failed = {event.who.pid for event in parts.events if event.kind in _FAILURES} - {None}
    speaking = [
        (event.who, event.file) for event in parts.events if event.kind not in _NOT_SPEAKING
    ]
    for hints, file in [*speaking, *((who, "") for who in parts.identities)]:
        who = identities.of(hints)
        is_known = who.rank is not None or who.engine is not None
        if not is_known and (who.pid not in failed or who.role not in _MEMBERS):
            continue
        if is_known and who.role == "engine_worker":
            continue
        key = (who.pid, who.rank, who.engine)
        if key not in found and len(found) < MAX_OF_LOGS:
            found[key] = ProcessPart(who=replace(who, worker=None), file=file)
    return list(found.values())


def _join_without_pid(groups: dict[tuple[object, ...], list[tuple[Who, ProcessPart]]]) -> None:
    """Give parts that know a rank or engine but no pid to the one process that has it."""
    with_pid: dict[tuple[object, ...], list[tuple[object, ...]]] = {}
    for key, group in groups.items():
        if key[0] == "pid":
            with_pid.setdefault(_index(group), []).append(key)
    for key in [key for key in groups if key[0] == "index"]:
        owners = with_pid.get(_index(groups[key]), [])
        if len(owners) == 1:
            groups[owners[0]] += groups.pop(key)


def _index(group: Sequence[tuple[Who, ProcessPart]]) -> tuple[object, ...]:
    who = group[0][0]
    for other, _ in group[1:]:
        who = who.or_else(other)
    if who.role == "trainer":
        return ("trainer", who.rank)
    return (who.role, who.rank, who.engine, who.replica, who.worker)


def _tells(group: Sequence[tuple[Who, ProcessPart]]) -> bool:
    """Whether a group says anything on a process of the job."""
    who = group[0][0]
    if who.role not in (None, "other") or who.rank is not None or who.engine is not None:
        return True
    return any(
        part.stack or part.activity or part.status not in ("unknown", "running")
        for _, part in group
    )


def _resolved(who: Who, file_who: Who, identities: Identities, part: ProcessPart) -> Who:
    if who.pid in identities.helpers:
        return identities.of(who)
    known = identities.of(who)
    if who.pid is None:
        known = known.or_else(file_who)
    known = _with_role(_with_rank(known, identities, part), identities, part)
    is_engine = known.role in ("engine", "engine_worker")
    if is_engine and known.engine is None and known.rank is None:
        index = identities.only_engine
        if index is not None:
            known = replace(known, engine=index, by=(*known.by, "the only engine in the files"))
    return known


def _with_rank(known: Who, identities: Identities, part: ProcessPart) -> Who:
    if known.rank is not None or known.role not in (None, "trainer"):
        return known
    if known.local_rank is not None:
        return replace(known, rank=known.local_rank)
    label = label_of(part.file)
    rank = identities.rank_of_label.get(label)
    if rank is None or known.engine is not None or not (part.stack or part.environment):
        return known
    return replace(known, rank=rank, by=(*known.by, f"files of {label} name rank {rank}"))


def _with_role(known: Who, identities: Identities, part: ProcessPart) -> Who:
    if known.role is not None:
        return known
    if known.rank is not None:
        return replace(known, role="trainer")
    if known.engine is not None or known.worker is not None:
        return replace(known, role="engine")
    if _TRAINING_SCRIPT.search(known.command) and "ray::" not in known.command:
        role: Role = "driver" if identities.ray else "trainer"
        return replace(known, role=role, by=(*known.by, "the script's name"))
    if part.stack is not None and is_of_trainer(part.stack):
        return replace(known, role="trainer", by=(*known.by, "a training library in its stack"))
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
    """The name of a process in the report: `rank 3`, `engine 1 worker 0`, `driver`."""
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
    if who.role is None and who.pid is None and rank is None and _is_answer(event):
        is_engine = identities.only_engine is not None
    if is_engine and engine is None and rank is None:
        engine = identities.only_engine
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


def _is_answer(event: RawEvent) -> bool:
    """Whether it is a line of an access log, which only a server writes."""
    return event.kind == "engine_control" and " HTTP/1" in event.text


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
