"""What is looked at, and what comes back: the two ends of every source."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Protocol

from watchdog.evidence import (
    ActivitySample,
    Flag,
    Gap,
    LogEvent,
    MemoryRegion,
    ProcessStatus,
    Socket,
    StackSample,
)


@dataclass(frozen=True)
class Target:
    """One process of this host.

    Attributes:
        pid: Its process id.
        name: How a gap calls it: `rank 3`; `pid <n>` where it is left empty.
        traceback_file: Where faulthandler's timer writes this process's stacks, if it is armed.
    """

    pid: int
    name: str = ""
    traceback_file: Path | None = None

    @property
    def is_self(self) -> bool:
        """Whether it is the calling process: what only the inside knows can be had."""
        return self.pid == os.getpid()

    def __str__(self) -> str:
        return self.name or f"pid {self.pid}"


@dataclass(frozen=True)
class Part:
    """What one source found of one process. Fields are named as in the evidence.

    A field at its default was not looked for by this source, or a gap says why it is missing.
    """

    status: ProcessStatus = "unknown"
    status_detail: str = ""
    command: str = ""
    stacks: tuple[StackSample, ...] = ()
    activity: tuple[ActivitySample, ...] = ()
    memory: tuple[MemoryRegion, ...] = ()
    sockets: tuple[Socket, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()
    log_events: tuple[LogEvent, ...] = ()
    gaps: tuple[Gap, ...] = ()


class Source(Protocol):
    """What each module of the table offers."""

    @property
    def NAME(self) -> str:  # noqa: N802 (a module's constant)
        """What a gap calls it: `sockets`."""
        ...

    def collect(self, target: Target) -> Part:
        """Read what there is. May raise: the caller turns it into a gap."""
        ...


def combined(parts: Iterable[Part]) -> Part:
    """One part of many: tuples one after the other, of single values the last that is set.

    A state goes with its own detail: one that needs none clears that of a state before.
    """
    whole: dict[str, object] = {}
    for part in parts:
        for entry in fields(Part):
            value = getattr(part, entry.name)
            before = whole.get(entry.name)
            if isinstance(value, tuple):
                whole[entry.name] = (*(before or ()), *value)  # type: ignore[misc]
            elif isinstance(value, dict):
                whole[entry.name] = {**(before or {}), **value}  # type: ignore[dict-item]
            elif (
                value != entry.default
                or before is None
                or (entry.name == "status_detail" and part.status != "unknown")
            ):
                whole[entry.name] = value
    return Part(**whole)  # type: ignore[arg-type]
