"""The TCP connections of a process, with what waits in their queues."""

from __future__ import annotations

import os
import socket
import sys

from watchdog.capture import proc
from watchdog.capture.target import Part, Target
from watchdog.evidence import Gap, Socket

NAME = "sockets"

_MAX_SOCKETS = 500
# include/net/tcp_states.h, in order, from 1.
_STATES = (
    "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE",
    "CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING", "NEW_SYN_RECV",
)  # fmt: skip


def collect(target: Target) -> Part:
    """Connections and listeners of one process, in the order of the kernel's table."""
    try:
        inodes = _socket_inodes(target.pid)
    except FileNotFoundError:
        return Part()  # gone: the state says so
    except OSError as error:
        return Part(gaps=(Gap(f"sockets of {target}", str(error), "run as the same user"),))
    found: list[Socket] = []
    for table in ("tcp", "tcp6"):
        try:
            lines = proc.read_text(f"/proc/{target.pid}/net/{table}").splitlines()[1:]
        except OSError:
            continue
        found += [_socket(line.split()) for line in lines if _inode(line) in inodes]
    return Part(sockets=tuple(found[:_MAX_SOCKETS]))


def _socket_inodes(pid: int) -> set[str]:
    inodes = set()
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            link = os.readlink(f"/proc/{pid}/fd/{descriptor}")
        except OSError:
            continue
        if link.startswith("socket:["):
            inodes.add(link[8:-1])
    return inodes


def _inode(line: str) -> str:
    fields = line.split(maxsplit=10)
    return fields[9] if len(fields) > 9 else ""


def _socket(fields: list[str]) -> Socket:
    """One line of the table, as proc_pid_net(5) describes it."""
    sent, _, received = fields[4].partition(":")
    number = int(fields[3], 16) - 1
    state = _STATES[number] if 0 <= number < len(_STATES) else fields[3]
    return Socket(
        local=_address(fields[1]),
        remote="" if state == "LISTEN" else _address(fields[2]),
        state=state,
        recv_queue_bytes=int(received, 16),
        send_queue_bytes=int(sent, 16),
    )


def _address(text: str) -> str:
    """`0100007F:1F90` to `127.0.0.1:8080`: words in the machine's byte order."""
    words, _, port = text.partition(":")
    raw = bytes.fromhex(words)
    if sys.byteorder == "little":
        raw = b"".join(raw[start : start + 4][::-1] for start in range(0, len(raw), 4))
    if len(raw) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, raw)}:{int(port, 16)}"
    if raw.startswith(b"\0" * 10 + b"\xff\xff"):
        return f"{socket.inet_ntop(socket.AF_INET, raw[12:])}:{int(port, 16)}"
    return f"[{socket.inet_ntop(socket.AF_INET6, raw)}]:{int(port, 16)}"
