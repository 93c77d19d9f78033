"""Events that speak of something else than their writer: a killed pid, a mapped library, flags."""

from __future__ import annotations

import re
from dataclasses import replace

from watchdog.discovery.titles import role_by_process_name
from watchdog.evidence import ProcessStatus
from watchdog.intake.flags import PAIR, flag
from watchdog.intake.parts import Parts, ProcessPart, RawEvent, Who
from watchdog.intake.prefixes import who_by_process_name

_WORKER = re.compile(r"(?:scheduler|Worker|worker)[_-]?(?:TP)?(\d{1,4})$")


def infer(parts: Parts) -> None:
    """Add what events say on other processes, on versions and on arguments."""
    libraries: dict[str, str] = {}
    for event in list(parts.events):
        fields = event.fields
        if event.kind in ("oom_kill", "oom_scope"):
            _dead(event, fields.get("killed_pid"), "killed by the OOM killer", parts)
        elif event.kind == "engine_worker_died":
            _engine_worker(event, parts)
        elif event.kind == "ray_task_error" and fields.get("task_pid"):
            _task(event, parts)
        elif event.kind == "engine_address":
            _engine_address(event, parts)
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
    _library_versions(libraries, parts)


def _pid(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) < 10 else None


def _dead(event: RawEvent, pid_text: str | None, detail: str, parts: Parts) -> None:
    pid = _pid(pid_text)
    if pid is None:
        return
    name = event.fields.get("name", "")
    who = Who(pid=pid, by=(f"{event.kind} in {event.file}",))
    _add(
        event,
        who.or_else(Who(command=name, role=role_by_process_name(name))),
        "dead",
        detail,
        parts,
    )


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
