"""What all readers of stacks share: limits, and which thread is the main one."""

from __future__ import annotations

from watchdog.evidence import Frame, ThreadStack
from watchdog.masking import mask_text

MAX_THREADS = 2_000
MAX_FRAMES = 400
MAX_LOCALS = 40
MAX_LOCAL_CHARS = 300

_OUTERMOST_OF_MAIN = ("<module>", "main", "_start")


def main_first(threads: list[ThreadStack]) -> tuple[ThreadStack, ...]:
    """The threads with `MainThread` in front; the others keep their order."""
    return tuple(sorted(threads, key=lambda thread: thread.name != "MainThread"))


def is_main(frames: tuple[Frame, ...]) -> bool:
    """Whether a stack without a name is the main thread's: its outermost call is a module."""
    return bool(frames) and frames[-1].function in _OUTERMOST_OF_MAIN


def clipped_locals(values: dict[str, str], name: str, value: str) -> None:
    """Add one printed variable to a frame's, masked and bounded."""
    if len(values) < MAX_LOCALS:
        masked = mask_text(f"{name}={value[: MAX_LOCAL_CHARS * 2]}")
        values[name] = masked.removeprefix(f"{name}=")[:MAX_LOCAL_CHARS]
