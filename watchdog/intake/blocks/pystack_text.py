"""pystack's text: `pystack remote PID`, also with `--native`; outermost call first."""

from __future__ import annotations

import re
from dataclasses import replace

from watchdog.evidence import Frame, StackSample, ThreadStack
from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, Who
from watchdog.intake.stacks import is_main, main_first, threads_under

LINE_LITERALS = ("Traceback for thread ",)

_HEADER = re.compile(
    r"Traceback for thread (?P<tid>\d{1,10})(?: \((?P<name>[^)]{0,64})\))?"
    r"(?P<state> \[[^\]]{0,80}\])? ?(?:\(most recent call (?:last|first)\))?:?\s*$"
)
_FRAME = re.compile(
    r"\s*\((?P<language>Python|C|C\+\+|Cython)\) File \"(?P<file>[^\"]{1,1000})\","
    r"(?: line (?P<line>\d{1,8}),)? in (?P<name>.+)$"
)
_LIBRARY = re.compile(r" \((?P<lib>[^()]+)\)$")


def opens(text: str) -> bool:
    """`Traceback for thread 4711 (python3) [Has the GIL] (most recent call last):`."""
    return text.startswith("Traceback for thread ") and _HEADER.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """Frames, their source lines, further threads, blank lines."""
    return not text.strip() or text[0] in " \t" or opens(text)


def parse(block: Block, parts: Parts) -> None:
    """One sample; the process is the thread with the smallest id."""
    threads = threads_under(block.lines, _HEADER, _FRAME, _thread)
    if not threads:
        return
    lowest = min(thread.os_thread_id or 0 for thread in threads)
    context = block.context
    who = context.who.or_else(block.first.who)
    who = who.or_else(Who(pid=lowest, by=("lowest thread id in pystack",)))
    parts.add_process(
        replace(
            block.part(who),
            stack=StackSample(main_first(threads), "pystack", from_file=context.file),
        )
    )


def _thread(header: re.Match[str], calls: list[re.Match[str]]) -> ThreadStack:
    innermost_first = tuple(_frame(call) for call in reversed(calls))
    state = header["state"] or ""
    if "Waiting for the GIL" in state and not any(f.native for f in innermost_first):
        # Python frames alone do not show it.
        innermost_first = (Frame("take_gil", native=True), *innermost_first)
    return ThreadStack(
        name="MainThread" if is_main(innermost_first) else header["name"] or "",
        frames=innermost_first,
        os_thread_id=int(header["tid"]),
        owns_gil="Has the GIL" in state if state else None,
    )


def _frame(match: re.Match[str]) -> Frame:
    native = match["language"] in ("C", "C++")
    name, library = match["name"].strip(), _LIBRARY.search(match["name"])
    file = match["file"]
    if native and library:
        name, file = name[: library.start()], library["lib"]
    return Frame(name[:500], file, int(match["line"] or 0), native=native)
