"""Launchers and notes: workers that ended, and which process is which rank.

What these lines do not say: a worker that ended with status 1 may be a victim that could not go
on; `closing signal` is sent to all that are left.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "worker_failed",
        "failed (exitcode: ",
        r"failed \(exitcode: (?P<exit_code>-?\d{1,4})\) local_rank: (?P<local_rank>\d{1,4})"
        r" \(pid: (?P<died_pid>\d{1,9})\)",
    ),
    line_kind(
        "rank_map",
        ("rank pid", "rank,pid", "rank -> pid", "rank/pid", "rank: pid", "ranks, pids"),
        r"^\W{0,4}ranks?(?:, ?|: ?| -> |/| )pids?\s*[:=]?\s*"
        r"(?P<pairs>\d{1,6}[ :=]+\d{2,9}(?:[,;]? *\d{1,6}[ :=]+\d{2,9}){0,2000})\s*$",
    ),
    line_kind(
        "rank_map",
        "rank ",
        r"^\W{0,4}ranks? (?P<pairs>\d{1,6} ?[:=]+ ?\d{3,9}"
        r"(?:[,;]? +(?:rank )?\d{1,6} ?[:=]+ ?\d{3,9}){1,2000})\b",
    ),
    line_kind(
        "rank_map",
        ("rank ", "rank="),
        r"^\W{0,4}(?:global[_ ])?rank[ =:#]{1,2}"
        r"(?P<pairs>\d{1,6}\W{1,5}(?:is )?pid[ =:#]{1,2}\d{2,9})\b",
    ),
    line_kind("rank_map", "= pid", r"\brank ?= pid ?- ?(?P<first_pid>\d{1,9})\b"),
)
