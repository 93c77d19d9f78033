"""gdb's `thread apply all bt`: native frames of all threads."""

from __future__ import annotations

import re

from watchdog.evidence import Frame, StackSample, ThreadStack
from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, ProcessPart, Who
from watchdog.intake.stacks import MAX_FRAMES, MAX_THREADS, main_first

LINE_LITERALS = ("(LWP ",)

_HEADER = re.compile(
    r"Thread \d+ \((?:Thread 0x[0-9a-f]+ )?\(?LWP (?P<tid>\d{1,9})\)?\)?"
    r"(?: \"(?P<name>[^\"]{0,64})\")?.{0,20}:\s*$"
)
_FRAME = re.compile(
    r"#\d+\s+(?:0x[0-9a-f]+ in )?(?P<function>\S.{0,1500}?)\s*(?:\((?P<args>.*)\))?"
    r"(?: from (?P<lib>\S+)| at (?P<file>\S+?):(?P<line>\d+))?\s*$"
)


def opens(text: str) -> bool:
    """`Thread 12 (Thread 0x7f… (LWP 345)):`."""
    return "(LWP " in text and _HEADER.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """Frames, their wrapped ends, further threads, blank lines."""
    if not text.strip() or text.startswith(("#", " ", "\t")):
        return True
    return opens(text)


def parse(block: Block, parts: Parts) -> None:
    """One native sample; the main thread is the one with the smallest LWP."""
    threads = _threads(block.lines)
    if not threads:
        return
    lowest = min(thread.os_thread_id or 0 for thread in threads)
    named = [
        ThreadStack("MainThread", thread.frames, thread.os_thread_id)
        if thread.os_thread_id == lowest
        else thread
        for thread in threads
    ]
    context = block.context
    who = context.who.or_else(block.first.who).or_else(Who(pid=lowest, by=("lowest LWP in gdb",)))
    parts.add_process(
        ProcessPart(
            who=who,
            file_who=context.file_who,
            file=context.file,
            moment=context.moment or block.first.moment,
            order=context.order,
            stack=StackSample(main_first(named), "gdb", from_file=context.file),
        )
    )


def _threads(lines: list[str]) -> list[ThreadStack]:
    threads: list[ThreadStack] = []
    frames: list[Frame] = []
    header: re.Match[str] | None = None
    for text in [*lines, None]:
        match = _HEADER.match(text) if text is not None and text.startswith("Thread") else None
        if match or text is None:
            if header and len(threads) < MAX_THREADS:
                name = header["name"] or ""
                threads.append(ThreadStack(name, tuple(frames), int(header["tid"])))
            header, frames = match, []
        elif text.startswith("#") and (frame := _FRAME.match(text)) and len(frames) < MAX_FRAMES:
            frames.append(_frame(frame))
    return threads


def _frame(match: re.Match[str]) -> Frame:
    library = (match["lib"] or "").rsplit("/", 1)[-1]
    file, line = match["file"] or library, int((match["line"] or "0")[:9])
    return Frame(match["function"].strip()[:500], file, line, native=not file.endswith(".py"))
