"""Schedulers and MPI launchers: tasks that ended, steps that never began.

What these lines do not say: which task failed first, where one line lists many; a task that was
`Killed` together with all others was ended because of them. A task is a rank only where the
scheduler started the ranks itself, without a launcher in between.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "task_ended",
        "srun: error: ",
        r"srun: error: (?P<host>[\w.\-]{1,80}): tasks? (?P<tasks>\[?\d[\d,\-]{0,200}\]?): "
        r"(?P<how>Out Of Memory|Killed|Bus error|Segmentation fault|Exited with exit code \d+"
        r"|Aborted|Terminated)",
    ),
    line_kind(
        "task_ended",
        "noticed that process rank",
        r"noticed that process rank (?P<tasks>\d{1,6}) with PID (?P<died_pid>\d{1,9})"
        r" on node (?P<host>[\w.\-]{1,80}) exited on signal \d+ \((?P<how>[\w ]{1,40})",
    ),
    line_kind(
        "task_ended",
        "RUNNING AT ",
        r"RANK (?P<tasks>\d{1,6}) PID (?P<died_pid>\d{1,9}) RUNNING AT (?P<host>[\w.\-]{1,80})",
        how="bad termination",
    ),
    line_kind(
        "oom_kill",
        ("oom_kill event", "oom-kill event"),
        r"Detected (?P<count>\d{1,6}) oom[_-]kill events?(?:\(s\))? in (?P<step>[\w.= ]{1,60})",
    ),
    line_kind(
        "launch_failed",
        ("Task launch for ", "execve()", "executable file not found", "ssh: connect to host "),
        r"Task launch for \S{1,60} failed on node (?P<host>[\w.\-]{1,80}): (?P<reason>.{1,200})"
        r"|execve\(\): (?P<path>\S{1,300}): (?P<why>No such file or directory|Permission denied)"
        r"|exec: \"?(?P<program>[^\":]{1,200})\"?: executable file not found"
        r"|ssh: connect to host (?P<target>\S{1,80}) port \d+: (?P<refusal>.{1,80})",
    ),
    line_kind(
        "launch_failed",
        ("FailedScheduling", "ErrImagePull", "ImagePullBackOff"),
        r"(?P<reason>FailedScheduling|ErrImagePull|ImagePullBackOff)\s+"
        r"pod/(?P<host>[a-z0-9][a-z0-9.\-]*)",
    ),
)
