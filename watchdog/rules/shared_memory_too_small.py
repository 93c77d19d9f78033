"""/dev/shm is too small for what the processes exchange through it.

What hangs
    A tensor-parallel engine or NCCL's shared-memory transport, at start or at the first large
    message.

How it shows
    `No space left on device` or a bus error with /dev/shm, NCCL warnings about shared memory,
    Ray's note that /dev/shm has only 64 MiB.

What to do
    Start the container with `--shm-size` or `--ipc=host`.

Not to be confused with
    Ray's note alone, which only says that the object store uses the disk.

Source
    https://github.com/vllm-project/vllm/pull/1125
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted, quotes
from watchdog.situation import Situation

CAUSE_CLASS: Final = "config_invalid"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    full = situation.log(
        r"(No space left on device.*(/dev/shm|shm))|(/dev/shm.*No space"
        r" left)|Error while creating shared memory segment|Bus error.*shm"
    )
    if full:
        return finding(__name__, CAUSE_CLASS, "likely", "Shared memory is full.", quotes(full, 2))
    small = situation.log(r"/dev/shm has only \d+ bytes")
    if small and situation.log(r"ncclSystemError|NCCL WARN.*shm|Bus error"):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "Shared memory is small, and NCCL failed.",
            [quoted(small[0])],
        )
    return None
