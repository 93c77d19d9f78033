"""How much of the evidence a report for people shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Upper bounds of one rendering; what is left out is counted in the report.

    Attributes:
        text_chars: Characters of one sentence.
        entries: Entries of one list: causes, groups, supports, gaps …
        stacks: Stacks, one an equivalence class.
        threads: Threads of one stack.
        frames: Calls of one thread.
        rows: Rows of one table: flags, variables, versions, log lines.
    """

    text_chars: int
    entries: int
    stacks: int
    threads: int
    frames: int
    rows: int


# From generous to tight: the first that fits into the size limit is used. The last one fits
# whatever the evidence, which a test proves with evidence of hostile size.
STEPS = (
    Limits(text_chars=1000, entries=30, stacks=12, threads=12, frames=60, rows=120),
    Limits(text_chars=600, entries=16, stacks=6, threads=4, frames=40, rows=60),
    Limits(text_chars=300, entries=8, stacks=3, threads=2, frames=25, rows=20),
    Limits(text_chars=160, entries=4, stacks=2, threads=1, frames=12, rows=8),
)
