"""Let a child read its parent: what the watched process does so that py-spy may look at it."""

from __future__ import annotations

import ctypes
from pathlib import Path

_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)
_YAMA_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")


def allow_any_tracer() -> bool:
    """Lift Yama's `ptrace_scope=1` for the calling process, for any reader of the same user.

    Threads share the permission; children do not inherit it. Never raises.

    Returns:
        Whether the kernel took it. `False` where Yama is not built in (nothing to lift) and
        where the scope is 3.

    Source:
        prctl(2), PR_SET_PTRACER.
    """
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return bool(libc.prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def yama_scope() -> int | None:
    """The machine's `kernel.yama.ptrace_scope`; `None` without Yama."""
    try:
        return int(_YAMA_SCOPE.read_text())
    except (OSError, ValueError):
        return None


def how_to_allow() -> str:
    """What whoever starts the job can do so that stacks can be read from outside."""
    scope = yama_scope()
    if scope is not None and scope > 1:
        return (
            f"this machine has kernel.yama.ptrace_scope={scope}: run "
            "`sysctl kernel.yama.ptrace_scope=1` on the host (2 needs CAP_SYS_PTRACE, 3 a reboot)"
        )
    return (
        "start the container with --cap-add=SYS_PTRACE (Kubernetes: securityContext.capabilities."
        "add: [SYS_PTRACE]), as the same user; outside of one, "
        "`sysctl kernel.yama.ptrace_scope=0` on the host"
    )
