"""How processes end, most of them seen by one that is not their parent. Standard library only.

A descriptor of the process is opened while it lives and becomes readable when it ends. What it
ended with is told by the kernel itself (Linux >= 6.15, `PIDFD_GET_INFO`), or by `/proc` as long as
nobody has reaped it; on older kernels, of a process reaped at once, it stays unknown.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct

# struct pidfd_info as of its first version: mask, cgroup id, eleven ids, exit code.
_INFO = struct.Struct("<QQ11Ii")
_PIDFD_GET_INFO = 0xC0000000 | _INFO.size << 16 | 0xFF << 8 | 11
_PIDFD_INFO_EXIT = 1 << 3


def start_ticks(pid: int) -> int:
    """Start time of a process that runs (clock ticks since boot), 0 if it has ended."""
    fields = _stat(pid)
    return 0 if not fields or fields[0] in (b"Z", b"X") else int(fields[19])


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal, or by a tracer."""
    return _stat(pid)[:1] in ([b"T"], [b"t"])


def open_process(pid: int, ticks: int) -> int:
    """A descriptor that becomes readable when the process ends.

    Args:
        pid: Its process id.
        ticks: When it started, so that no later process of the same number is meant.

    Returns:
        The descriptor, -1 where it runs no more or the kernel has no such descriptors.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return -1
    if start_ticks(pid) != ticks:
        os.close(descriptor)
        return -1
    return descriptor


def wait_status(pid: int, descriptor: int) -> int | None:
    """Wait status of a process that has ended, `None` where it cannot be told (yet)."""
    if descriptor >= 0:
        data = bytearray(_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 12, 0))
        try:
            fcntl.ioctl(descriptor, _PIDFD_GET_INFO, data)
        except OSError:
            pass
        else:
            mask, *_, exit_code = _INFO.unpack(data)
            if mask & _PIDFD_INFO_EXIT:
                return int(exit_code)
    fields = _stat(pid)
    # 0 also where the reader may not trace the process (proc_pid_stat(5)).
    if fields and fields[0] == b"Z" and len(fields) > 49 and int(fields[49]):
        return int(fields[49])
    return None


def status_of_child(pid: int) -> int | None:
    """Wait status of a child of this process, which is reaped; `None` while it runs.

    Of one that somebody else has reaped it is 0.
    """
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return status if ended else None


def kill(pid: int) -> None:
    """End a process, if it is there."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def ending_text(status: int | None) -> str:
    """A wait status in words: `killed by signal 9 (SIGKILL)`, `exit status 1`."""
    if status is None:
        return "the process is gone; how it ended is not known"
    if not os.WIFSIGNALED(status):
        return f"exit status {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "?"
    return f"killed by signal {number} ({name})"


def _stat(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []
