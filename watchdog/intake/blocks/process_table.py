"""`ps` and `top`: which processes were there, in which state."""

from __future__ import annotations

import re

from watchdog.evidence import ActivitySample, ThreadActivity
from watchdog.intake.blocks import Block
from watchdog.intake.parts import Listing, Parts, ProcessPart, Who
from watchdog.intake.prefixes import who_by_process_name
from watchdog.masking import mask_text
from watchdog.process_letters import STATUS_BY_LETTER

LINE_LITERALS = ()  # not what logs hold
MAX_ROWS = 5_000

_HEADER = re.compile(
    r"\s*(?:(?:USER|UID|F|S|PPID|HOST)\s+)*\S*\s*\bPID\s.*\b(?:COMMAND|CMD|ARGS)\s*$"
)
# What `ps -eo pid,stat,... | grep` leaves: no header, and the command above names the columns.
_ROW = re.compile(r"\s*\d{2,9}\s+[RSDTtZIX][A-Za-z<+]{0,5}\s+\S")
_COLUMNS = re.compile(r"\bps\b[^|;&]*?\s-\w*o\s*(?P<columns>[\w:%]+(?:,[\w:%]+)+)")
_NAMES = {"STATE": "STAT", "CPUTIME": "TIME", "ARGS": "CMD", "COMM": "COMMAND"}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgt]?)$")
_SCALE = {"": 1024, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


def opens(text: str) -> bool:
    """The header, which names PID and ends with the command's column, or a row without one."""
    if _ROW.match(text):
        return True
    return "PID" in text and len(text) < 400 and _HEADER.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """Rows: as many columns as the header has, a number where the pid stands."""
    if len(block.lines) > MAX_ROWS:
        return False
    if _ROW.match(block.lines[0]):
        return _ROW.match(text) is not None
    columns = block.lines[0].split()
    row = text.split(None, len(columns) - 1)
    return len(row) >= len(columns) - 1 and row[columns.index("PID")].isdigit()


def parse(block: Block, parts: Parts) -> None:
    """One part for each process that has to do with the job."""
    is_headless = _ROW.match(block.lines[0]) is not None
    columns = _told_columns(block.context.title) if is_headless else block.lines[0].split()
    if "PID" not in columns:
        return
    members: dict[int, Who] = {}
    for line in block.lines if is_headless else block.lines[1:]:
        row = dict(zip(columns, line.split(None, len(columns) - 1), strict=False))
        command = mask_text(row.get("COMMAND") or row.get("CMD") or row.get("ARGS") or "")[:2000]
        pid = row["PID"]
        told = who_by_process_name(command)
        if not command or len(pid) > 9 or told.role == "other":
            continue
        if told.role is None and told.rank is None and told.local_rank is None:
            continue
        state = (row.get("STAT") or row.get("S") or "")[:1]
        wchan = row.get("WCHAN", "-")
        context = block.context
        who = Who(pid=int(pid), command=command, host=context.who.host, by=("process table",))
        who = members[int(pid)] = who.or_else(told)
        parts.add_process(
            ProcessPart(
                who=who,
                file=context.file,
                moment=context.moment or block.first.moment,
                order=context.order,
                status=STATUS_BY_LETTER.get(state, "running" if state else "unknown"),
                activity=ActivitySample(
                    rss_bytes=_bytes(row.get("RES") or row.get("RSS")),
                    cpu_s=_cpu_s(row.get("TIME+") or row.get("TIME")),
                    threads=(ThreadActivity(int(pid), state=state, wchan=wchan.strip("-")),),
                ),
            )
        )
    header = " ".join(columns)
    parts.listings.append(Listing(block.context.file, header, block.context.order, members))


def _told_columns(command: str) -> list[str]:
    """The header that `ps -o` of this command would have printed; empty without one."""
    match = _COLUMNS.search(command)
    if match is None:
        return []
    names = [name.split(":")[0].upper() for name in match["columns"].split(",")]
    return [_NAMES.get(name, name) for name in names]


def _bytes(text: str | None) -> int | None:
    match = _SIZE.match((text or "").lower())
    return int(float(match[1]) * _SCALE[match[2]]) if match else None


def _cpu_s(text: str | None) -> float | None:
    parts = (text or "").replace("-", ":").split(":")
    if not 2 <= len(parts) <= 4 or not all(re.fullmatch(r"\d{1,8}(?:\.\d+)?", p) for p in parts):
        return None
    seconds = 0.0
    for part, scale in zip(reversed(parts), (1, 60, 3600, 86_400), strict=False):
        seconds += float(part) * scale
    return seconds
