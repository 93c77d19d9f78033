"""What all readers of stacks share: limits, and which thread is the main one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

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


def threads_under(
    lines: Iterable[str],
    header: re.Pattern[str],
    frame: re.Pattern[str],
    thread: Callable[[re.Match[str], list[re.Match[str]]], ThreadStack],
) -> list[ThreadStack]:
    """The threads of a text in which each has a heading and then a line a call.

    Args:
        lines: The text; lines that are neither are skipped.
        header: Matches a thread's heading.
        frame: Matches a call.
        thread: Makes one of its heading and its calls, in the order of the text, at most
            `MAX_FRAMES`.
    """
    found: list[tuple[re.Match[str], list[re.Match[str]]]] = []
    for text in lines:
        if (opened := header.match(text)) is not None:
            found.append((opened, []))
        elif found and len(found[-1][1]) < MAX_FRAMES and (call := frame.match(text)) is not None:
            found[-1][1].append(call)
    return [thread(*each) for each in found[:MAX_THREADS]]


def clipped_locals(values: dict[str, str], name: str, value: str) -> None:
    """Add one printed variable to a frame's, masked and bounded."""
    if len(values) < MAX_LOCALS:
        masked = mask_text(f"{name}={value[: MAX_LOCAL_CHARS * 2]}")
        values[name] = masked.removeprefix(f"{name}=")[:MAX_LOCAL_CHARS]
