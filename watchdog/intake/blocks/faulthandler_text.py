"""`faulthandler` dumps: by signal, by timer, or before a fatal error. No pid stands in them."""

from __future__ import annotations

import re

from watchdog.evidence import Frame, StackSample, ThreadStack
from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, ProcessPart, RawEvent
from watchdog.intake.stacks import MAX_FRAMES, MAX_THREADS, is_main, main_first
from watchdog.masking import mask_text

LINE_LITERALS = ("(most recent call first)", "Fatal Python error: ")

_HEADER = re.compile(
    r"(?P<current>Current thread|Thread) 0x[0-9A-Fa-f]{1,16}(?: \[(?P<name>[^\]]{0,64})\])?"
    r"(?: \(most recent call first\))?:?\s*$"
)
_FATAL = re.compile(r"Fatal Python error: (.{1,300})$")
_FRAME = re.compile(r'\s+File "(?P<file>[^"]{1,1000})", line (?P<line>\d{1,8}) in (?P<name>.+)$')
_OTHERS = (
    "Python runtime state",
    "Extension modules:",
    "Timeout (",
    "  <no Python frame>",
    "  ...",
)


def opens(text: str) -> bool:
    """A thread's header, or `Fatal Python error`."""
    if text.startswith("Fatal Python error: "):
        return True
    return text.endswith("(most recent call first):") and _HEADER.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """More threads, their frames, blank lines between."""
    if not text.strip() or _FRAME.match(text) or text.startswith(_OTHERS):
        return True
    return text.endswith("(most recent call first):") and _HEADER.match(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """One stack sample, and an event if a fatal error stands above it."""
    context, first = block.context, block.first
    fatal = next((match for line in block.lines if (match := _FATAL.match(line))), None)
    who = first.who.or_else(context.who)
    if fatal:
        parts.add_event(
            RawEvent(
                kind="fatal_error",
                text=mask_text(fatal[0]),
                file=context.file,
                line=block.number,
                moment=first.moment,
                who=who,
                fields={"error": fatal[1][:200]},
            )
        )
    threads = _threads(block.lines)
    if threads:
        parts.add_process(
            ProcessPart(
                who=who,
                file_who=context.file_who,
                file=context.file,
                moment=context.moment or first.moment,
                order=context.order,
                stack=StackSample(main_first(threads), "faulthandler", from_file=context.file),
            )
        )


def _threads(lines: list[str]) -> list[ThreadStack]:
    threads: list[ThreadStack] = []
    frames: list[Frame] = []
    header: re.Match[str] | None = None
    for text in [*lines, None]:
        match = _HEADER.match(text) if text is not None and not text.startswith(" ") else None
        if match or text is None:
            if header and len(threads) < MAX_THREADS:
                main = is_main(tuple(frames))
                name = "MainThread" if main else (header["name"] or "").strip()
                threads.append(ThreadStack(name=name, frames=tuple(frames)))
            header, frames = match, []
        elif (frame := _FRAME.match(text)) and len(frames) < MAX_FRAMES:
            frames.append(Frame(frame["name"].strip()[:500], frame["file"], int(frame["line"])))
    return threads
