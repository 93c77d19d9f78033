"""One line a sync in `syncs.jsonl`: all that a healthy run leaves behind."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from watchdog.guest.notices import notice_once
from watchdog.process_identity import ProcessIdentity
from watchdog.recording.recorder import FinishedSection

FILE_NAME = "syncs.jsonl"


def sync_line(
    finished: FinishedSection, identity: ProcessIdentity, incident: str | None
) -> dict[str, object]:
    """Describe one section that has ended.

    Returns:
        JSON values: `section`, `index`, `ended_at_s` (wall clock), `duration_s`, `phases`
        (name to seconds, in order of first mark), `rank`, `host`; `raised` and `incident` only
        where there was such a thing.
    """
    section = finished.section
    line: dict[str, object] = {
        "section": section.name,
        "index": section.index,
        "ended_at_s": round(time.time() - (time.monotonic() - finished.ended_s), 3),
        "duration_s": round(finished.ended_s - section.began_s, 6),
        "phases": {name: round(spent_s, 6) for name, spent_s in section.phases.items()},
        "rank": identity.rank,
        "host": identity.host,
    }
    if finished.raised:
        line["raised"] = finished.raised
    if incident is not None:
        line["incident"] = incident
    return line


def append_line(path: Path, line: dict[str, object], *, mode: int = 0o644) -> None:
    """Append one line by one write, so that lines of several writers stay whole. Never raises.

    Args:
        path: The file.
        line: What to append, as JSON.
        mode: Permissions of a new file.
    """
    data = json.dumps(line).encode() + b"\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, mode)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError as error:
        notice_once(str(path), f"{path}: {error.strerror}; lines are lost, training goes on")
