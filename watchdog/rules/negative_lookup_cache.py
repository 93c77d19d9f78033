"""A file that exists stays invisible on another node because NFS caches the negative lookup.

What hangs
    A rank that polls for the file; after about sixty seconds it goes on.

How it shows
    Waits quantised at 60 s (acdirmax), a polling frame, an NFS mount; the writer says that it
    wrote the file long ago.

What to do
    List the parent directory before each look, mount with `lookupcache=positive` or a smaller
    acdirmax, or tell by message instead of by file.

Not to be confused with
    rank_waits_for_file, where nobody wrote it.

Source
    https://github.com/PrimeIntellect-ai/prime-rl/pull/3026
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "storage_slow"

MIN_WAITS = 3
"""Fewer equal waits than this may be chance."""

_WAITED = re.compile(r"wait\w*[:= ]+(\d{1,4}\.\d+) ?s\b")


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    polling = situation.doing("file_wait", among=situation.evidence.processes)
    mount = situation.log(r"type nfs|nfs4?\b")
    lifetimes = {int(n) for e in mount for n in re.findall(r"\bac(?:dir)?max=(\d+)", e.text)}
    waits = [float(n) for e in situation.evidence.log_events for n in _WAITED.findall(e.text)]
    quantised = [w for w in waits if any(0 <= w - limit < 0.01 * limit for limit in lifetimes)]
    if polling and len(quantised) >= MIN_WAITS:
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            f"{len(quantised)} waits for a file lasted as long as the file system caches its"
            " absence.",
            [
                *(seen(situation, p) for p in polling[:2]),
                f"waits of {min(quantised):.2f} to {max(quantised):.2f} s",
                quoted(mount[0]),
            ],
            culprits=polling,
        )
    written = {
        e.fields.get("path")
        for e in situation.evidence.log_events
        if e.kind in ("file_found", "file_written")
    }
    wanted = {e.fields.get("path") for e in situation.evidence.log_events if e.kind == "file_wait"}
    if polling and mount and written & wanted - {None}:
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "A rank polls for a file that another node already sees.",
            [*(seen(situation, p) for p in polling[:2]), quoted(mount[0])],
            culprits=polling,
        )
    return None
