"""Events of a cluster: pods that were ended by the node.

What these lines do not say: which rank ran in the pod. `Killing` and `Stopping container` also
stand at the end of every pod that was deleted on purpose, so they are not read as a failure.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "pod_ended",
        ("Evicted", "OOMKill", "Preempted", "BackOff"),
        r"\b(?P<reason>Evicted|OOMKilled|OOMKilling|Preempted|BackOff)\s+"
        r"(?:pod/)(?P<pod>[a-z0-9][a-z0-9.\-]*)\s+(?P<message>.{0,300})",
    ),
)
