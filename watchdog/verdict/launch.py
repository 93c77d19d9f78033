"""A part of the job was never started, and the others wait for it to join."""

from __future__ import annotations

from dataclasses import dataclass

from watchdog.evidence import LogEvent, Process
from watchdog.situation import Situation
from watchdog.verdict import errors
from watchdog.verdict.judgement import Judgement


def launch_failure(situation: Situation) -> LogEvent | None:
    """The first line that says that something could not be started, before any other failure."""
    found = [e for e in situation.evidence.log_events if e.kind == "launch_failed"]
    first = min(found, key=situation.logs.order) if found else None
    late = situation.logs.first_time_out
    if first is None or errors.fatal_error(situation) is not None:
        return None
    if late is not None and situation.logs.is_later(first, late):
        return None
    return first


def never_started(situation: Situation) -> Judgement | None:
    """A launch that failed, and a group that its ranks never joined."""
    event = launch_failure(situation)
    if event is None or not missing_members(situation):
        return None
    line = event.text.strip().splitlines()[0][:200]
    told = missing_members(situation)[0].text.strip().splitlines()[-1][:160]
    return Judgement("crashed", f"A part of the job was never started: `{line}`; then `{told}`.")


@dataclass(frozen=True)
class Shortage:
    """What a job asks of its cluster and cannot get.

    Attributes:
        wanted: GPUs of all requests that are not granted.
        total: GPUs of the cluster.
        events: The lines that say so.
    """

    wanted: float
    total: float
    events: tuple[LogEvent, ...]


def shortage(situation: Situation) -> Shortage | None:
    """More GPUs asked for than the whole cluster has, by the last listing of its resources."""
    totals = [e for e in situation.evidence.log_events if e.kind == "cluster_gpus"]
    if not totals:
        return None
    listed = totals[-1]
    demands = tuple(
        e
        for e in situation.evidence.log_events
        if e.kind == "cluster_demand" and e.file == listed.file and e.line > listed.line
    )
    wanted = sum(
        float(e.fields["gpus"]) * int(e.fields.get("count_of_bundles", "1")) for e in demands
    )
    total = float(listed.fields["total"])
    return Shortage(wanted, total, (listed, *demands)) if wanted > total else None


def never_granted(situation: Situation) -> Judgement | None:
    """A driver that waits for resources that its cluster does not have."""
    lack = shortage(situation)
    waiting = waits_for_resources(situation)
    if lack is None or not waiting:
        return None
    return Judgement(
        "hung",
        f"{waiting[0].key} waits for {lack.wanted:g} GPUs of a cluster that has {lack.total:g}.",
        chain=(f"{waiting[0].key} waits for its placement group",),
    )


def waits_for_resources(situation: Situation) -> tuple[Process, ...]:
    """Processes that wait until a placement group is granted."""
    asking = situation.at(r"placement_group", among=situation.evidence.processes)
    return situation.doing("rpc", "sleep", "await", among=asking)


def missing_members(situation: Situation) -> tuple[LogEvent, ...]:
    """Lines that say how few of the members joined a store or group."""
    return tuple(
        event
        for event in situation.evidence.log_events
        if event.fields.get("joined", "").isdigit()
        and event.fields.get("world_size", "").isdigit()
        and int(event.fields["joined"]) < int(event.fields["world_size"])
    )


def first_failure(situation: Situation) -> LogEvent | None:
    """What everything else follows from: the first fatal error, or a launch that failed."""
    return errors.fatal_error(situation) or launch_failure(situation)
