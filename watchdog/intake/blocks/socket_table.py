"""`ss` and `netstat`: who is connected to whom, and who waits for an answer."""

from __future__ import annotations

import re
from collections import defaultdict

from watchdog.discovery.titles import role_by_process_name
from watchdog.evidence import Socket
from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, ProcessPart, RawEvent, Who

LINE_LITERALS = ("Recv-Q", "users:((")
MAX_ROWS = 20_000

_STATES = {
    "ESTAB": "ESTABLISHED",
    "SYN-SENT": "SYN_SENT",
    "SYN-RECV": "SYN_RECV",
    "CLOSE-WAIT": "CLOSE_WAIT",
    "FIN-WAIT-1": "FIN_WAIT1",
    "FIN-WAIT-2": "FIN_WAIT2",
    "TIME-WAIT": "TIME_WAIT",
    "LAST-ACK": "LAST_ACK",
}
_STATE = re.compile(
    r"\b(?:ESTAB(?:LISHED)?|LISTEN|UNCONN|[A-Z]{3,5}[-_](?:SENT|RECV|WAIT\S*|ACK)|CLOSING)\b"
)
_PID = re.compile(r"pid=(\d{1,9})|\s(\d{1,9})/\S+")
_NAME = re.compile(r"\(\(\"([^\"]{1,60})\"")
_ADDRESS = re.compile(r"(?<![\w.:\[\]])(\[?[\w.:*%]+\]?:(?:\d{1,5}|\*))(?=\s|$)")


def opens(text: str) -> bool:
    """The header with the queues, or a row if the header was cut off."""
    if "Recv-Q" in text and "Send-Q" in text:
        return True
    return "users:((" in text and _STATE.match(text.lstrip()) is not None


def continues(text: str, block: Block) -> bool:
    """Rows: a state, two numbers, two addresses."""
    return len(block.lines) < MAX_ROWS and _STATE.search(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """Sockets of each pid, and an event for every connection that does not come about."""
    sockets: dict[int | None, list[Socket]] = defaultdict(list)
    names: dict[int | None, str] = {}
    context = block.context
    for offset, line in enumerate(block.lines):
        state, socket, pid = _row(line)
        if socket is None:
            continue
        sockets[pid].append(socket)
        name = _NAME.search(line)
        if name:
            names.setdefault(pid, name[1])
        if state in ("SYN_SENT", "CLOSE_WAIT"):
            fields = {"state": state, "local": socket.local, "remote": socket.remote}
            who = Who(pid=pid, host=context.who.host)
            parts.add_event(
                RawEvent(
                    "socket", line.strip()[:300], context.file, block.number + offset,
                    context.moment, who, fields,
                )
            )  # fmt: skip
    for pid, own in sockets.items():
        if pid is not None:
            parts.add_process(
                ProcessPart(
                    who=Who(
                        pid=pid,
                        host=context.who.host,
                        role=role_by_process_name(names.get(pid, "")),
                        by=("socket table",),
                    ),
                    file=context.file,
                    moment=context.moment,
                    order=context.order,
                    sockets=tuple(own[:500]),
                )
            )


def _row(line: str) -> tuple[str, Socket | None, int | None]:
    state_match = _STATE.search(line)
    addresses = _ADDRESS.findall(line)
    if not state_match or not addresses:
        return "", None, None
    state = _STATES.get(state_match[0], state_match[0])
    queues = re.findall(r"(?<!\S)\d{1,12}(?!\S)", line[: line.index(addresses[0])])
    pid = _PID.search(line)
    remote = addresses[1] if len(addresses) > 1 and state != "LISTEN" else ""
    socket = Socket(
        local=addresses[0],
        remote=remote,
        state=state,
        recv_queue_bytes=int(queues[0]) if len(queues) >= 2 else None,
        send_queue_bytes=int(queues[1]) if len(queues) >= 2 else None,
    )
    return state, socket, int(pid[1] or pid[2]) if pid else None
