"""torchrun's summary of a failed job: which worker failed first, and how it ended."""

from __future__ import annotations

import re
import signal

from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, ProcessPart, Who
from watchdog.intake.times import find_moment

LINE_LITERALS = ("Root Cause (first observed failure)",)

_ROW = re.compile(r"\s+(?P<name>[\w ]{1,20}?)\s*: (?P<value>.*)$")
_RANK = re.compile(r"(?P<rank>\d{1,6}) \(local_rank: \d{1,4}\)")
_CODE = re.compile(r"(?P<code>-?\d{1,4}) \(pid: (?P<pid>\d{1,9})\)")
_MAX_LINES = 16


def opens(text: str) -> bool:
    """The heading. What stands under `Failures:` ended because of this one, and is left out."""
    return text.startswith("Root Cause (first observed failure)")


def continues(text: str, block: Block) -> bool:
    """`[0]:` and the indented rows under it."""
    if len(block.lines) > _MAX_LINES:
        return False
    return text.startswith("[") or _ROW.match(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """The worker as dead, if a signal ended it that the agent did not send.

    With an exit status it wrote why itself, and may be a victim of a rank on another node.
    """
    rows = {m["name"]: m["value"] for line in block.lines[1:] if (m := _ROW.match(line))}
    rank, code = _RANK.match(rows.get("rank", "")), _CODE.match(rows.get("exitcode", ""))
    if not rank or not code:
        return
    host = rows.get("host", "").strip()
    who = Who(
        pid=int(code["pid"]),
        rank=int(rank["rank"]),
        host="" if host == "localhost" else host,
        role="trainer",
        by=("torchrun's summary",),
    )
    if int(code["code"]) in (*range(256), -signal.SIGTERM):
        parts.add_identity(who)
        return
    found = find_moment(rows.get("time", "").replace("_", " "))
    parts.add_process(
        ProcessPart(
            who=who,
            file=block.context.file,
            moment=found[0] if found else block.context.moment,
            order=block.context.order,
            status="dead",
            status_detail=exit_text(int(code["code"])),
        )
    )


def exit_text(code: int) -> str:
    """An exit code as Python gives it, in words: negative is a signal."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"killed by signal {-code}"
