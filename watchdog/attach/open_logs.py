"""The ends of the logs that a job's processes have open: their output, and files called a log.

Found through `/proc/<pid>/fd`, so no name has to be known. Only plain files are opened, and only
for reading; a terminal or a pipe is somebody else's to read.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from watchdog.discovery.jobs import Job, Member
from watchdog.evidence import Gap
from watchdog.intake import BLOCKS
from watchdog.intake.inferences import infer
from watchdog.intake.line_reader import LineReader
from watchdog.intake.parts import NOBODY, Parts, Who
from watchdog.intake.prefixes import has_slurm_labels
from watchdog.intake.reading import context_of
from watchdog.intake.text import decode, looks_binary

TAIL_BYTES = 2**20
MAX_FILES = 64
MAX_ALL_BYTES = 24 * 2**20
_MAX_DESCRIPTORS = 4096
_LOG_NAME = re.compile(r"\.(?:log|out|err)(?:\.\d+)?$|(?:^|[/_.-])logs?(?:[/_.-]|$)", re.I)
_WRITES = os.O_WRONLY | os.O_RDWR


@dataclass
class OpenLog:
    """One file, and who has it open.

    Attributes:
        name: Its path as the kernel gives it.
        readable_at: Where it can be opened although it may have been deleted, as long as the
            process lives.
        identity: Its device and inode, by which it is known again under its name.
        owners: The processes that write to it.
    """

    name: str
    readable_at: str
    identity: tuple[int, int]
    owners: list[Member] = field(default_factory=list)


@dataclass(frozen=True)
class LogsRead:
    """What the logs say.

    Attributes:
        parts: Events and arguments, tied to the processes of the job.
        files: Names of the files that were read.
        gaps: Output that cannot be read, and files that were left out.
    """

    parts: Parts
    files: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()


class OpenLogs:
    """The logs that a job has open when this is made; they can be read later, and again.

    Args:
        job: Its processes.
        host: Name of this host.
    """

    def __init__(self, job: Job, host: str) -> None:
        self._job, self._host = job, host
        self._logs, self._unreadable = _open_logs(job.members)

    def read(self) -> LogsRead:
        """Read the ends of all of them, a bounded amount, each file once."""
        logs = self._logs
        parts = Parts()
        for member in self._job.members:
            parts.add_identity(_who(member, self._host))
        gaps = [_not_files(self._unreadable)] if self._unreadable else []
        left, names = MAX_ALL_BYTES, []
        for log in logs[:MAX_FILES]:
            try:
                left -= _read(log, min(TAIL_BYTES, left), parts, self._host)
            except OSError as error:
                gaps.append(Gap(f"end of {log.name}", error.strerror or str(error)))
                continue
            names.append(log.name)
            if left <= 0:
                break
        if len(logs) > len(names) + len(gaps):
            gaps.append(Gap("further open logs", f"{len(logs) - len(names)} more than are read"))
        infer(parts)
        # Stacks that stand in a log are older than what is looked at now.
        parts.processes.clear()
        return LogsRead(parts, tuple(names), tuple(gaps))


def _open_logs(members: Iterable[Member]) -> tuple[list[OpenLog], list[Member]]:
    found: dict[tuple[int, int], OpenLog] = {}
    elsewhere = []
    for member in members:
        folder = f"/proc/{member.seen.pid}/fd"
        try:
            descriptors = sorted(os.listdir(folder), key=int)[:_MAX_DESCRIPTORS]
        except (OSError, ValueError):
            continue
        for descriptor in descriptors:
            is_output = descriptor in ("1", "2")
            log = _log_at(f"{folder}/{descriptor}", member.seen.pid, descriptor, is_output)
            if log is None:
                if is_output and member not in elsewhere:
                    elsewhere.append(member)
                continue
            owners = found.setdefault(log.identity, log).owners
            if member not in owners:
                owners.append(member)
    return list(found.values()), elsewhere


def _log_at(path: str, pid: int, descriptor: str, is_output: bool) -> OpenLog | None:
    try:
        name, status = os.readlink(path), os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode) or not (is_output or _LOG_NAME.search(name)):
        return None
    if not is_output and not _is_written(pid, descriptor):
        return None
    return OpenLog(name, path, (status.st_dev, status.st_ino))


def _is_written(pid: int, descriptor: str) -> bool:
    try:
        with open(f"/proc/{pid}/fdinfo/{descriptor}") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        return bool(int(fields["flags"], 8) & _WRITES)
    except (OSError, ValueError, KeyError):
        return False


def _read(log: OpenLog, max_bytes: int, parts: Parts, host: str) -> int:
    with _opened(log) as file:
        start = max(0, os.fstat(file.fileno()).st_size - max_bytes)
        file.seek(start)
        data = file.read(max_bytes)
    if looks_binary(data[:4096]):
        return len(data)
    lines = decode(data).split("\n")
    name = log.name
    if start:
        lines = lines[1:]  # begins in the middle of a line
        name += f" (last {max_bytes >> 10} KiB)"
    context = context_of(name)
    owner = log.owners[0] if len(log.owners) == 1 else None
    if owner is not None and owner.role in ("trainer", "engine", "engine_worker"):
        context = replace(context, file_who=_who(owner, host).or_else(context.file_who))
    elif len(log.owners) > 1:
        context = replace(context, file_who=NOBODY)
    reader = LineReader(context, BLOCKS, parts, has_slurm_labels(lines))
    for number, line in enumerate(lines, start=1):
        reader.feed(number, line.rstrip("\r"))
    reader.close()
    return len(data)


def _opened(log: OpenLog) -> BinaryIO:
    try:
        return open(log.readable_at, "rb", opener=_unblocking)
    except FileNotFoundError:  # the process has ended since; the file may still lie there
        file = open(log.name, "rb", opener=_unblocking)  # noqa: SIM115 (the caller's to close)
    status = os.fstat(file.fileno())
    if (status.st_dev, status.st_ino) != log.identity:
        file.close()
        raise FileNotFoundError(f"{log.name} is another file by now")
    return file


def _unblocking(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
    return descriptor


def _who(member: Member, host: str) -> Who:
    return Who(
        pid=member.seen.pid, rank=member.rank, engine=member.engine, replica=member.replica,
        worker=member.worker, host=host, role=member.role, by=("the open file",),
    )  # fmt: skip


def _not_files(members: list[Member]) -> Gap:
    names = ", ".join(member.key for member in members[:8])
    return Gap(
        f"output of {names}{' …' if len(members) > 8 else ''}",
        "it goes to a terminal, a pipe or nowhere, which only its reader has",
        "pass what was collected of it to `miles-watchdog diagnose` together with this folder",
    )
