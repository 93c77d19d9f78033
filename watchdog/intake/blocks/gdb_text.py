"""gdb's `thread apply all bt`, or a plain `bt` of one thread: native frames."""

from __future__ import annotations

import re
from dataclasses import replace

from watchdog.evidence import Frame, StackSample, ThreadStack
from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, Who
from watchdog.intake.stacks import main_first, threads_under

LINE_LITERALS = ("(LWP ",)

_HEADER = re.compile(
    r"Thread \d+ \((?:Thread 0x[0-9a-f]+ )?\(?LWP (?P<tid>\d{1,9})\)?\)?"
    r"(?: \"(?P<name>[^\"]{0,64})\")?.{0,20}:\s*$"
)
_FRAME = re.compile(
    r"#\d+\s+(?:0x[0-9a-f]+ in )?(?P<function>\S.{0,1500}?)\s*(?:\((?P<args>.*)\))?"
    r"(?: from (?P<lib>\S+)| at (?P<file>\S+?):(?P<line>\d+))?\s*$"
)

_INNERMOST = re.compile(
    r"#0 +(?:0x[0-9a-f]+ in )?[\w:~<>*&, ]{1,300}(?:@\S{1,40})? ?\(.*\)(?: from | at |$)"
)


def opens(text: str) -> bool:
    """`Thread 12 (Thread 0x7f… (LWP 345)):`, or the innermost frame of a plain `bt`."""
    if "(LWP " in text:
        return _HEADER.match(text) is not None
    return text.startswith("#0 ") and _INNERMOST.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """Frames, their wrapped ends, further threads, blank lines."""
    if not text.strip() or text.startswith((" ", "\t")):
        return True
    if text.startswith("#"):
        return text[1:2].isdigit()
    return opens(text)


def parse(block: Block, parts: Parts) -> None:
    """One native sample; the main thread is the one with the smallest LWP.

    A plain `bt` does not say of which process it is: without a prompt or heading it is not used.
    """
    threads = threads_under(block.lines, _HEADER, _FRAME, _thread)
    if not threads and (pid := block.context.who.pid) is not None:
        lines = [f"Thread 1 (LWP {pid}):", *block.lines]
        threads = threads_under(lines, _HEADER, _FRAME, _thread)
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
        replace(
            block.part(who),
            stack=StackSample(main_first(named), "gdb", from_file=context.file),
        )
    )


def _thread(header: re.Match[str], calls: list[re.Match[str]]) -> ThreadStack:
    return ThreadStack(header["name"] or "", tuple(map(_frame, calls)), int(header["tid"]))


def _frame(match: re.Match[str]) -> Frame:
    library = (match["lib"] or "").rsplit("/", 1)[-1]
    file, line = match["file"] or library, int((match["line"] or "0")[:9])
    return Frame(match["function"].strip()[:500], file, line, native=not file.endswith(".py"))
