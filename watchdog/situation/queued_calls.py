"""Calls of Ray actors that wait behind a running call of the same actor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from watchdog.evidence import Evidence, LogEvent, Process
from watchdog.waits import Wait


@dataclass(frozen=True)
class QueuedCall:
    """A pending call, the one that runs before it, and who runs that.

    Attributes:
        pending: Row of the waiting call.
        running: Row of the running call of the same actor.
        runner: The process in that call, by the method in its stack; `None` where none shows it.
    """

    pending: LogEvent
    running: LogEvent
    runner: Process | None

    @property
    def waits_for_itself(self) -> bool:
        """Whether the running call made the pending one."""
        task = self.running.fields.get("task", "")
        return bool(task) and self.pending.fields.get("parent") == task


def method_of(row: LogEvent) -> str:
    """Name of the method that the row calls."""
    return row.fields.get("name", "").rsplit(".", 1)[-1]


def queued_calls(evidence: Evidence, waits: Mapping[str, Wait]) -> tuple[QueuedCall, ...]:
    """Every pending call whose actor is busy with another one."""
    rows = [e for e in evidence.log_events if e.kind == "ray_task"]
    busy = {e.fields["actor"]: e for e in rows if e.fields.get("state") == "RUNNING"}
    found = []
    for row in rows:
        running = busy.get(row.fields.get("actor", ""))
        if running is None or not row.fields.get("state", "").startswith("PENDING"):
            continue
        runner = next((p for p in evidence.processes if _is_in(waits[p.key], running)), None)
        found.append(QueuedCall(row, running, runner))
    return tuple(found)


def _is_in(wait: Wait, row: LogEvent) -> bool:
    return any(f.function == method_of(row) for f in (*wait.frames, *wait.path))
