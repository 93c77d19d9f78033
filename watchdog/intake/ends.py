"""Who ended: what kernel, cluster, launcher, Ray and two process tables say of others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from watchdog.discovery.titles import role_by_process_name
from watchdog.intake.blocks.pod_table import pod
from watchdog.intake.blocks.torchrun_summary import exit_text
from watchdog.intake.parts import NOBODY, Listing, Parts, ProcessPart, RawEvent, Who
from watchdog.intake.tasks import ended_tasks

_MEMBERS = ("trainer", "engine", "engine_worker")


def infer_ends(parts: Parts) -> None:
    """Add a dead process for every line or table that tells of one."""
    restarted = [event for event in parts.events if event.kind == "engine_restarted"]
    for event in list(parts.events):
        found = _ended(event, restarted)
        if found is not None:
            who, detail = found
            parts.add_process(
                ProcessPart(
                    who=who,
                    file=event.file,
                    moment=event.moment,
                    status="dead",
                    status_detail=detail,
                )
            )
    for event, who, detail in ended_tasks(parts):
        parts.add_process(
            ProcessPart(who=who, file=event.file, status="dead", status_detail=detail)
        )
    for earlier, later in _same_listings(parts.listings):
        for pid in _missing(earlier, later):
            parts.add_process(
                ProcessPart(
                    who=earlier.processes[pid],
                    file=later.file,
                    order=later.order,
                    status="dead",
                    status_detail="missing from the later process list",
                )
            )


def _ended(event: RawEvent, restarted: Sequence[RawEvent]) -> tuple[Who, str] | None:
    fields = event.fields
    pid = _number(fields.get("killed_pid") or fields.get("died_pid"))
    name = fields.get("name", "")
    by = (f"{event.kind} in {event.file}",)
    if event.kind in ("oom_kill", "oom_scope") and pid is not None:
        role = role_by_process_name(name)
        return Who(pid=pid, command=name, role=role, by=by), "killed by the OOM killer"
    if event.kind == "segfault" and pid is not None:
        role = role_by_process_name(name)
        return Who(pid=pid, command=name, role=role, by=by), "segmentation fault"
    if event.kind == "own_segfault" and event.who is not NOBODY:
        return event.who, "segmentation fault"
    if event.kind == "ray_worker_out_of_memory" and pid is not None:
        return Who(pid=pid, by=by), "killed by Ray: the node is out of memory"
    if event.kind == "ray_worker_killed" and pid is not None:
        return Who(pid=pid, by=by), f"Ray: {fields.get('detail', 'killed')}"
    code = fields.get("exit_code", "")
    if event.kind == "worker_failed" and code.startswith("-") and code != "-15":
        return Who(pid=pid, role="trainer", by=by), exit_text(int(code))
    if event.kind == "pod_ended":
        reason, message = fields.get("reason", ""), fields.get("message", "")
        return pod(fields["pod"]), f"{reason}: {message}".strip(": ")
    engine = _number(fields.get("engine_index"))
    if event.kind == "engine_killed" and engine is not None:
        if any(_came_back(event, later) for later in restarted):
            return None
        return Who(engine=engine, role="engine", by=by), event.text.strip()[:200]
    return None


def _came_back(event: RawEvent, later: RawEvent) -> bool:
    index = later.fields.get("engine_index") or later.fields.get("restarted")
    if index != event.fields.get("engine_index"):
        return False
    # In another file there is no telling which came first: then it may be alive.
    return later.file != event.file or later.line > event.line


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) < 10 else None


def _same_listings(listings: Sequence[Listing]) -> list[tuple[Listing, Listing]]:
    """Process tables of one file that were asked for alike, one after the other."""
    ordered = sorted(listings, key=lambda listing: (listing.file, listing.header, listing.order))
    return [
        (one, other)
        for one, other in pairwise(ordered)
        if (one.file, one.header) == (other.file, other.header)
    ]


def _missing(earlier: Listing, later: Listing) -> list[int]:
    """Members that the later table lacks, if it still lists others of their kind.

    A table that lacks most of the earlier one is one of another host, or was asked for less.
    """
    gone = [pid for pid in earlier.processes if pid not in later.processes]
    if not gone or len(gone) * 2 > len(earlier.processes):
        return []
    kinds = {who.role for who in later.processes.values()}
    return [
        pid
        for pid in gone
        if earlier.processes[pid].role in _MEMBERS and earlier.processes[pid].role in kinds
    ]
