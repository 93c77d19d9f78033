"""/dev/shm is small.

What can happen
    Message queues of the engine or Ray's object store do not fit; a process ends with a bus
    error, or waits for a block that is never free.

What decides
    What is put there: the engine's queues, loaders' batches, Ray's objects.

What to do
    Start the container with --shm-size or --ipc=host.

Source
    https://github.com/vllm-project/vllm/pull/1125
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "shared-memory-too-small"

MIN_BYTES = 1 << 30
"""Containers get 64 MiB unless told otherwise."""


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    if launch.host is None or launch.host.shared_memory_bytes is None:
        return None
    size = launch.host.shared_memory_bytes
    if size >= MIN_BYTES:
        return None
    return Seen("suspect", (f"/dev/shm has {size / 2**30:.2g} GiB",))
