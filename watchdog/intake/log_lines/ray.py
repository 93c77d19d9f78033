"""Ray: actors that died, tasks that failed, memory pressure.

What these lines do not say: `died unexpectedly` gives no reason; the worker's own log or the
kernel's has it. A `RayTaskError` carries the remote error's text, raised wherever `ray.get` was.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "ray_worker_died",
        ("worker died or was killed", "Worker unexpectedly exits", "actor died unexpectedly"),
        r"A worker died or was killed.{0,200}?unexpected system error(?:.{0,400}?Worker IP address:"
        r" (?P<ip>[\w.:]+?))?(?:.{0,80}?Worker PID: (?P<died_pid>\d+))?(?:\s|$)"
        r"|Worker unexpectedly exits|The actor died unexpectedly",
    ),
    line_kind(
        "ray_actor_error",
        ("ActorDiedError", "RayActorError", "ActorUnavailableError", "The actor is dead"),
        r"(?P<error>ActorDiedError|RayActorError|ActorUnavailableError|The actor is dead)"
        r"(?:.{0,300}?class_name: (?P<name>\w+))?(?:.{0,300}?pid: (?P<died_pid>\d+))?",
    ),
    line_kind(
        "ray_worker_killed",
        "INTENDED_SYSTEM_EXIT",
        r"Worker PID: (?P<died_pid>\d{1,9}) Worker exit type: INTENDED_SYSTEM_EXIT"
        r".{0,120}?(?P<detail>actor is killed|killed by `?ray\.kill)",
    ),
    line_kind(
        "ray_worker_out_of_memory",
        "NODE_OUT_OF_MEMORY",
        r"(?i:worker process |worker[ _]pid[=: ]+|\bpid[=: ]+)(?P<died_pid>\d{1,9})\b"
        r".{0,160}?(?i:exit[ _]type)[=: ]+\W?NODE_OUT_OF_MEMORY",
    ),
    line_kind(
        "ray_oom_kill",
        ("low on memory", "due to memory pressure", "OutOfMemoryError: Task was killed"),
        r"(?:running low on memory|due to memory pressure|OutOfMemoryError: Task was killed)",
    ),
    line_kind(
        "ray_task_error",
        "RayTaskError(",
        r"RayTaskError\((?P<exception>\w+)\): (?P<task>ray::[\w.]+)(?:\(\))?"
        r"(?: \(pid=(?P<task_pid>\d+), ip=(?P<task_ip>[\w.:]+))?",
    ),
    line_kind(
        "small_dev_shm",
        "/dev/shm has only",
        r"/dev/shm has only (?P<bytes>\d+) bytes",
    ),
    line_kind(
        "resources_lacking",
        ("cannot be scheduled right now", "can fulfill resource request", " nodes are available: "),
        r"(?:resource request cannot be scheduled right now: (?P<request>\{.{1,200}?\})"
        r"|No available node types can fulfill resource request(?P<types>.{0,200})"
        r"|\b0/\d+ nodes are available: .{0,200}?Insufficient (?P<resource>[\w./\-]+))",
    ),
    line_kind(
        "cluster_gpus",
        " GPU",
        r"^\s*(?P<used>\d+(?:\.\d+)?)/(?P<total>\d+(?:\.\d+)?) GPU\s*$",
    ),
    line_kind(
        "cluster_demand",
        "pending ",
        r"^\s*(?P<bundle>\{.{0,80}?'GPU': (?P<gpus>\d+(?:\.\d+)?).{0,80}?\})"
        r"(?: \* (?P<count_of_bundles>\d+))?.{0,40}?: \d+\+? pending",
    ),
    line_kind(
        "ray_idle",
        "node_manager.cc",
        r"NodeManager: (?P<workers>\d+) workers, (?P<queued>\d+) queued tasks",
    ),
    line_kind(
        "ray_get_timeout",
        "GetTimeoutError",
        r"GetTimeoutError",
    ),
)
