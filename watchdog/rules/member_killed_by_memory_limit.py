"""A process of the job was killed because memory ran out.

What hangs
    Everybody who waits for the killed process: the owner of the call in `ray.get`, the others in
    the barrier behind it.

How it shows
    The kernel log names the pid (`Memory cgroup out of memory: Killed process`), Slurm the task
    (`task 3: Out Of Memory`), the engine or launcher reports exit code -9, Ray speaks of memory
    pressure, a cgroup counts an `oom_kill`, Kubernetes evicts the pod because the node is low on
    memory.
    All time-out lines come later.

What to do
    Give the node or the container more memory, or need less: fewer host copies, smaller buffers,
    weights and optimizer state not both on the host. It is not a communication problem.

Not to be confused with
    member_killed, where nothing says that memory was the reason; an exit after a time-out.

Source
    https://github.com/OpenRLHF/OpenRLHF/issues/265
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.evidence import LogEvent
from watchdog.findings import Finding, Refutation
from watchdog.signs import crash
from watchdog.signs.answers import finding, quotes
from watchdog.situation import Situation
from watchdog.verdict import (
    verdict_of,
)

CAUSE_CLASS: Final = "oom_or_killed"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if not crash.crashed(situation):
        return None
    killed = list(
        situation.log(
            r"Killed process \d+|oom-kill|oom_kill|low on memory|memory pressure|Task was killed"
        )
    )
    told = [
        p
        for p in crash.dead_processes(situation)
        if re.search(r"out of memory|oom|low on resource: memory", p.status_detail, re.I)
    ]
    if not killed and not told:
        return None
    mine = [e for e in killed if _ours(situation, e)]
    if not mine and not told:
        return finding(
            __name__,
            CAUSE_CLASS,
            "possible",
            "The kernel killed a process; whether of this job is not told.",
            quotes(killed, 2),
        )
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed",
        "A process of the job was killed for lack of memory.",
        [*quotes(mine, 3), *(f"{p.key}: {p.status_detail}" for p in told)],
        culprits=told,
    )


def _ours(situation: Situation, event: LogEvent) -> bool:
    """Whether the killed pid belongs to the job, or the job's own logs know of a signal 9."""
    pid = event.fields.get("killed_pid", "")
    if pid.isdigit():
        known = {p.pid for p in situation.evidence.processes}
        named = {c.pid for c in verdict_of(situation).culprits}
        return int(pid) in known | named or bool(
            situation.log(rf"\b{pid}\b.*(exit code|-9|SIGKILL)")
        )
    return (
        event.engine is not None
        or event.rank is not None
        or event.kind == "ray_oom_kill"
        or event.kind == "oom_kill"
    )
