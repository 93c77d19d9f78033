"""What faulthandler's C timer wrote: the stacks of a process that held its own GIL."""

from __future__ import annotations

import re
from pathlib import Path

from watchdog.capture import proc
from watchdog.evidence import Frame, StackSample, ThreadStack

_THREAD = re.compile(
    r"^(?:Current thread|Thread) 0x[0-9a-fA-F]+(?: \[(?P<name>.*)\])? \(most recent call first\):"
)
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+|\?\?\?) in (?P<function>.+)$')


def sample(path: Path) -> StackSample | None:
    """The last dump in the file, `None` where there is none.

    The names of threads are missing (Python writes them from 3.14 on); the main thread is the
    one that was started first, which faulthandler prints last.

    Raises:
        OSError: The file is not there, or may not be read.
    """
    threads: list[ThreadStack] = []
    for section in _sections(proc.read_text(path)):
        threads.append(section)
    if not threads:
        return None
    main = threads.pop()
    named_main = ThreadStack(main.name or "MainThread", main.frames)
    return StackSample(
        (named_main, *threads), "faulthandler",
        taken_at_s=path.stat().st_mtime, from_file=str(path),
    )  # fmt: skip


def _sections(text: str) -> list[ThreadStack]:
    found: list[tuple[str, list[Frame]]] = []
    for line in text.splitlines():
        if line.startswith("Timeout ("):
            found = []  # the timer fired again: only its last dump counts
        elif head := _THREAD.match(line):
            found.append((head["name"] or "", []))
        elif found and (frame := _FRAME.match(line)):
            number = int(frame["line"]) if frame["line"].isdigit() else 0
            function = frame["function"].rpartition(".")[2]
            found[-1][1].append(Frame(function, frame["file"], number))
    return [ThreadStack(name, tuple(frames)) for name, frames in found]
