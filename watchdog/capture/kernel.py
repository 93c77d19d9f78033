"""Whether the kernel killed a process for want of memory: its log and the cgroup's counters."""

from __future__ import annotations

import os
import re
from pathlib import Path

from watchdog.capture import proc
from watchdog.capture.target import Part, Target
from watchdog.evidence import Gap, LogEvent
from watchdog.masking import mask_text

NAME = "kernel"

_MAX_RECORDS = 20_000
_KILLED = re.compile(r"Killed process (?P<pid>\d+) \((?P<name>.*?)\)")
_CGROUPS = Path("/sys/fs/cgroup")


def collect(target: Target) -> Part:
    """Of a process that is gone or a zombie: what the kernel knows of its end. Else nothing."""
    if proc.state(target.pid) not in ("", "Z", "X"):
        return Part()
    events, gaps = _oom_kills(target)
    kills = oom_kills_of_cgroup()
    if events:
        return Part(status_detail="killed by the kernel: out of memory", log_events=events)
    if kills:
        text = f"memory.events of this cgroup: oom_kill {kills}"
        note = LogEvent("cgroup_oom_kill", text, fields={"count": str(kills)})
        return Part(log_events=(note,), gaps=gaps)
    return Part(gaps=gaps)


def oom_kills_of_cgroup(pid: int | str = "self") -> int | None:
    """How many processes of its cgroup were killed for memory since the cgroup was made.

    Returns:
        The counter of the memory cgroup, version 2 or 1; `None` where it cannot be read.
    """
    try:
        lines = proc.read_text(f"/proc/{pid}/cgroup").splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            files = [_CGROUPS / path.lstrip("/") / "memory.events", _CGROUPS / "memory.events"]
        elif "memory" in controllers.split(","):
            control = "memory.oom_control"
            files = [
                _CGROUPS / "memory" / path.lstrip("/") / control,
                _CGROUPS / "memory" / control,
            ]
        else:
            continue
        for file in files:
            if (count := _counter(file, "oom_kill")) is not None:
                return count
    return None


def _counter(file: Path, name: str) -> int | None:
    try:
        pairs = (line.split() for line in proc.read_text(file).splitlines())
        return next(int(pair[1]) for pair in pairs if pair[:1] == [name])
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _oom_kills(target: Target) -> tuple[tuple[LogEvent, ...], tuple[Gap, ...]]:
    try:
        records = _kernel_log()
    except OSError as error:
        return (), (
            Gap(
                f"the kernel's word on the end of {target}",
                f"the kernel log cannot be read: {error.strerror}",
                "look at `dmesg -T | grep -i 'killed process'` on the host",
            ),
        )
    found = []
    for text in records:
        match = _KILLED.search(text)
        # Inside a container the kernel's pid is another; then the name cannot settle it either.
        if match and int(match["pid"]) == target.pid:
            found.append(LogEvent("oom_kill", mask_text(text)[:2000], pid=target.pid))
    return tuple(found), ()


def _kernel_log() -> list[str]:
    """The records of /dev/kmsg, oldest first, without waiting for new ones."""
    records: list[str] = []
    descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while len(records) < _MAX_RECORDS:
            try:
                raw = os.read(descriptor, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue  # records were overwritten while we read
            if not raw:
                break
            records.append(raw.decode(errors="replace").partition(";")[2].partition("\n")[0])
    finally:
        os.close(descriptor)
    return records
