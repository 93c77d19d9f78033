"""Events that speak of something else than their writer: a killed pid, a mapped library, flags."""

from __future__ import annotations

import re
from dataclasses import replace

from watchdog.evidence import ProcessStatus
from watchdog.intake.ends import infer_ends
from watchdog.intake.flags import PAIR, flag
from watchdog.intake.folder_dates import date_folders
from watchdog.intake.parts import Parts, ProcessPart, RawEvent, Who
from watchdog.intake.prefixes import who_by_process_name
from watchdog.intake.times import find_moment

MAX_RANKS_BY_PID = 64
_PAIR = re.compile(r"(\d{1,6})(?:[ :=]+|\W{1,5}(?:is )?pid[ =:#]{1,2})(\d{2,9})")
_WORKER = re.compile(r"(?:scheduler|Worker|worker)[_-]?(?:TP)?(\d{1,4})$")


def infer(parts: Parts) -> None:
    """Add what events say on other processes, on versions and on arguments."""
    libraries: dict[str, str] = {}
    for index, event in enumerate(list(parts.events)):
        fields = event.fields
        if event.kind == "engine_worker_died":
            _engine_worker(event, parts)
        elif event.kind == "ray_task_error" and fields.get("task_pid"):
            _task(event, parts)
        elif event.kind == "engine_address":
            _engine_address(event, parts)
        elif event.kind == "own_pid" and event.who.pid is None and event.who.rank is not None:
            pid = _pid(fields.get("own_pid"))
            by = (f"its own line in {event.file}",)
            parts.add_identity(Who(pid=pid, rank=event.who.rank, role="trainer", by=by))
        elif event.kind == "nccl_setting" and event.who.pid is not None:
            variables = {fields["name"]: fields["value"]}
            parts.add_process(ProcessPart(event.who, file=event.file, environment=variables))
        elif event.kind == "nccl_version":
            _nccl_version(event, libraries, parts)
        elif event.kind == "engine_arguments":
            origin = f"{event.file}:{event.line} (engine)"
            for pair in PAIR.finditer(fields.get("arguments", "")):
                parts.add_flag(flag(pair["name"], pair["value"].strip("'\""), origin))
        elif event.kind in ("rank_announced", "store_barrier_timeout"):
            size = fields.get("world_size", "")
            if size.isdigit() and len(size) < 7:
                parts.world_sizes.append((int(size), event.file))
        elif event.kind == "lock_file" and (found := find_moment(fields["modified"])):
            parts.events[index] = replace(event, moment=found[0])
        elif event.kind == "rank_map":
            _rank_map(event, parts)
    _ranks_of_communicators(parts)
    _library_versions(libraries, parts)
    date_folders(parts)
    infer_ends(parts)


def _pid(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) < 10 else None


def _engine_worker(event: RawEvent, parts: Parts) -> None:
    fields = event.fields
    name = fields.get("name", "")
    worker = _WORKER.search(name)
    code = fields.get("exit_code")
    detail = f"exit status {code}" if code else "died unexpectedly"
    if code and code.startswith("-"):
        detail = f"killed by signal {code[1:]}"
    pid = _pid(fields.get("died_pid"))
    who = Who(
        pid=pid,
        engine=event.who.engine,
        worker=int(worker[1]) if worker else None,
        host=event.who.host,
        role="engine_worker",
        by=(f"{name} in {event.file}",),
    )
    if pid is not None or who.engine is not None:
        _add(event, who, "dead", detail, parts)


def _add(event: RawEvent, who: Who, status: ProcessStatus, detail: str, parts: Parts) -> None:
    parts.add_process(
        ProcessPart(
            who=who, file=event.file, moment=event.moment, status=status, status_detail=detail
        )
    )


def _rank_map(event: RawEvent, parts: Parts) -> None:
    """`rank pid: 0 2000, 1 2001`, or `rank = pid-2000`."""
    by = (f"map of ranks in {event.file}",)
    for rank, pid in _PAIR.findall(event.fields.get("pairs", "")):
        parts.add_identity(Who(pid=int(pid), rank=int(rank), role="trainer", by=by))
    first = _pid(event.fields.get("first_pid"))
    if first is None:
        return
    for part in parts.processes:
        pid_known = part.who.pid
        if part.stack and pid_known is not None and 0 <= pid_known - first < MAX_RANKS_BY_PID:
            parts.add_identity(Who(pid=pid_known, rank=pid_known - first, role="trainer", by=by))


def _task(event: RawEvent, parts: Parts) -> None:
    fields = event.fields
    pid = _pid(fields.get("task_pid"))
    command = fields.get("task", "")
    who = Who(pid=pid, host=fields.get("task_ip", ""), command=command, by=("error of a Ray task",))
    parts.add_identity(who.or_else(who_by_process_name(command)))


def _engine_address(event: RawEvent, parts: Parts) -> None:
    fields = event.fields
    engine, pid = fields.get("engine_index", ""), _pid(fields.get("actor_pid"))
    if engine.isdigit() and len(engine) < 6:
        host = re.match(r"https?://([\w.\-]+)", fields.get("url", ""))
        parts.add_identity(
            Who(
                pid=pid,
                engine=int(engine),
                host=host[1] if host else "",
                role="engine",
                by=(f"list of engines in {event.file}",),
            )
        )


def _ranks_of_communicators(parts: Parts) -> None:
    """A process's place in the largest communicator, where that is the first it made.

    So each trainer begins, with all of them; an engine begins with its own few workers, and of
    two jobs in one file both would have a rank 0.
    """
    first: dict[tuple[str, int], RawEvent] = {}
    for event in parts.events:
        if event.kind == "nccl_comm_init" and event.who.pid is not None:
            first.setdefault((event.who.host, event.who.pid), event)
    size = max((_size(event) for event in first.values()), default=0)
    world = [event for event in first.values() if _size(event) == size]
    places = [event.fields["comm_rank"] for event in world]
    if size < 2 or len(set(places)) < len(places):
        return
    for event in world:
        if event.who.role in (None, "trainer") and event.who.rank is None:
            by = (f"its place in NCCL's first communicator, {event.file}",)
            rank = int(event.fields["comm_rank"])
            who = Who(pid=event.who.pid, host=event.who.host, rank=rank, role="trainer", by=by)
            parts.add_identity(who)


def _size(event: RawEvent) -> int:
    text = event.fields.get("nranks", "")
    return int(text) if text.isdigit() and len(text) < 7 else 0


def _nccl_version(event: RawEvent, libraries: dict[str, str], parts: Parts) -> None:
    version = event.fields.get("version", "")
    library = event.fields.get("library")
    if library:
        libraries[library] = version
    elif event.who.pid is not None or event.who.rank is not None:
        parts.add_process(ProcessPart(who=event.who, file=event.file, versions={"nccl": version}))
    else:
        parts.add_versions({"nccl": version})


def _library_versions(libraries: dict[str, str], parts: Parts) -> None:
    for index, part in enumerate(parts.processes):
        version = libraries.get(part.versions.get("libnccl.so", ""))
        if version:
            parts.processes[index] = replace(part, versions={**part.versions, "nccl": version})
