"""The kernel's own words, from `dmesg` or `journalctl -k`.

What these lines do not say: which part of the job grew; the process that *invoked* the OOM killer
is only the one that asked last. Times in brackets count from boot, not from the epoch.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "oom_kill",
        ("Killed process", "oom-kill:"),
        r"Killed process (?P<killed_pid>\d+) \((?P<name>[^)]{1,64})\)"
        r"(?:.{0,40}?anon-rss:(?P<anon_rss_kb>\d+)kB)?",
    ),
    line_kind(
        "oom_scope",
        "oom-kill:",
        r"oom-kill:constraint=(?P<constraint>\w+).{0,400}?task=(?P<name>[^,]{1,64}),"
        r"pid=(?P<killed_pid>\d+)",
    ),
    line_kind(
        "nfs_not_responding",
        "not responding",
        r"nfs: server (?P<server>\S{1,100}) not responding",
    ),
    line_kind("nfs_ok", "nfs: server ", r"nfs: server (?P<server>\S{1,100}) OK"),
    line_kind(
        "nfs_mount",
        (" type nfs", " type lustre", " type fuse", " type ceph", " type beegfs", " type gpfs"),
        r"(?P<server>\S{1,200}) on (?P<path>\S{1,300})"
        r" type (?P<type>nfs\d?|lustre|fuse\S*|ceph|beegfs|gpfs)",
    ),
    line_kind(
        "own_segfault",
        "!!! Segfault encountered",
        r"^!+ Segfault encountered !+",
    ),
    line_kind(
        "segfault",
        ("segfault at", "general protection"),
        r"(?P<name>[^\s:\[]{1,64})\[(?P<killed_pid>\d+)\].{0,20}(?:segfault at|general protection)",
    ),
    line_kind(
        "hung_task",
        "blocked for more than",
        r"task (?P<name>[^:]{1,64}):(?P<task_pid>\d+) blocked for more than (?P<blocked_s>\d+)",
    ),
)
