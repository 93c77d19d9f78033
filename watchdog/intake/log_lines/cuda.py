"""CUDA: out of memory, invalid access, handles that cannot be shared.

What these lines do not say: kernels run late, so the call that raises is seldom the call that
failed; an out-of-memory error in one rank is the cause, the timeouts of all others follow.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "cuda_oom",
        ("CUDA out of memory", "OutOfMemoryError", "CUDA_ERROR_OUT_OF_MEMORY"),
        r"CUDA out of memory(?:\. Tried to allocate (?P<tried>[\d.]+ \w+))?"
        r"|torch\.(?:cuda\.)?OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY",
    ),
    line_kind(
        "cuda_error",
        ("CUDA error:", "CUDA_ERROR_", "cudaError"),
        r"(?:CUDA error: (?P<error>[\w ]{3,100})|(?P<code>CUDA_ERROR_\w+|cudaError\w+))",
    ),
    line_kind(
        "cuda_ipc_refused",
        "pidfd_getfd",
        r"pidfd_getfd: (?P<error>[\w ]{3,80})",
    ),
    line_kind(
        "gpu_xid",
        "Xid",
        r"Xid \((?P<device>[^)]{1,60})\): (?P<xid>\d+)(?:, pid='?(?P<xid_pid>\d{1,9})\b)?",
    ),
    line_kind(
        "compiling",
        ("compiling", "Compiling", "Capture ", "torch.compile takes"),
        r"(?P<what>Triton is compiling \w+|[Cc]ompiling .{1,80}|torch\.compile takes .{1,40}"
        r"|Capture (?:draft )?cuda graph \w+)",
    ),
)
