"""The few files of `/proc` that several sources read."""

from __future__ import annotations

import os
from pathlib import Path

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def read_text(path: str | Path) -> str:
    """A small file, undecodable bytes replaced.

    Raises:
        OSError: It is not there, or may not be read.
    """
    with open(path, "rb") as file:
        return file.read(8 << 20).decode(errors="replace")


def stat_fields(path: str | Path) -> list[str]:
    """The fields of a `stat` file from the third on (`[0]` is the state), [] if it is not there.

    Source:
        proc_pid_stat(5); the second field, the name in brackets, may contain spaces and brackets.
    """
    try:
        return read_text(path).rpartition(")")[2].split()
    except OSError:
        return []


def state(pid: int) -> str:
    """State letter of a process (`R`, `S`, `D`, `T`, `t`, `Z`, `X`), "" if it is gone."""
    return next(iter(stat_fields(f"/proc/{pid}/stat")), "")


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks after boot: with the pid it is unmistakable."""
    fields = stat_fields(f"/proc/{pid}/stat")
    return int(fields[19]) if len(fields) > 19 else None


def command(pid: int) -> list[str]:
    """The command line, argument by argument; [] of a zombie or a kernel thread.

    Raises:
        OSError: The process is gone.
    """
    text = read_text(f"/proc/{pid}/cmdline")
    return text.rstrip("\0").split("\0") if text else []
