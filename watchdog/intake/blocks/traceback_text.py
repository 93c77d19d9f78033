"""Python tracebacks, also remote ones of Ray and chained ones: where an error came from."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block
from watchdog.intake.log_lines.table import KNOWN_LINES
from watchdog.intake.parts import Parts, RawEvent
from watchdog.masking import mask_text

LINE_LITERALS = ("Traceback (most recent call last)",)
MAX_FRAMES_KEPT = 40

_FRAME = re.compile(r'\s*File "(?P<file>[^"]{1,1000})", line (?P<line>\d{1,8}), in (?P<name>.+)$')
_EXCEPTION = re.compile(
    r"(?P<type>[A-Za-z_][\w.]{0,200}(?:\([\w., ]{1,200}\))?)(?:: (?P<message>.*))?$"
)
_REMOTE_TASK = re.compile(r"(ray::[\w.]+)\(\) \(pid=(\d+), ip=([\w.:]+)")


def opens(text: str) -> bool:
    """The header, wherever in the line it stands."""
    return "Traceback (most recent call last)" in text


def continues(text: str, block: Block) -> bool:
    """Indented lines, the exception's line, and the frames of a remote error behind it."""
    if not text.strip():
        return False
    if text[0] in " \t":
        return True
    if opens(text):
        return False
    previous = block.lines[-1]
    if len(block.lines) > 1 and previous[:1] not in (" ", "\t", ""):
        # The exception's line was read. Ray prints the remote frames behind it.
        return bool(_EXCEPTION.match(text)) and _is_exception(text) and _has_frame(block)
    return _EXCEPTION.match(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """A `traceback` event, and whatever its last line means by itself."""
    frames = [match for line in block.lines if (match := _FRAME.match(line))]
    ends = [line for line in block.lines[1:] if line[:1] not in (" ", "\t", "")]
    exception = next((line for line in reversed(ends) if _is_exception(line)), "")
    match = _EXCEPTION.match(exception)
    if not frames and not match:
        return
    fields = {
        "exception": match["type"].rsplit(".", 1)[-1] if match else "",
        "exception_full": match["type"] if match else "",
        "message": mask_text((match["message"] or "") if match else "")[:1000],
        "function": frames[-1]["name"].strip() if frames else "",
        "frames": "\n".join(
            f"{frame['name'].strip()} ({frame['file']}:{frame['line']})"
            for frame in reversed(frames[-MAX_FRAMES_KEPT:])
        ),
    }
    for end in ends:
        remote = _REMOTE_TASK.search(end)
        if remote:
            fields |= {"task": remote[1], "task_pid": remote[2], "task_ip": remote[3]}
    who = block.first.who.or_else(block.context.who)
    event = RawEvent(
        kind="traceback",
        text=mask_text(exception or block.lines[0])[:2000],
        file=block.context.file,
        line=block.number,
        moment=block.first.moment or block.context.moment,
        who=who,
        fields={name: value for name, value in fields.items() if value},
    )
    parts.add_event(event)
    for end in ends[-3:]:
        for kind, more in KNOWN_LINES.events(end):
            if kind != "error":
                parts.add_event(
                    RawEvent(kind, event.text, event.file, event.line, event.moment, who, more)
                )


def _is_exception(text: str) -> bool:
    match = _EXCEPTION.match(text)
    if not match:
        return False
    name = match["type"]
    return name.split("(")[0].endswith(
        ("Error", "Exception", "Interrupt", "Exit", "Warning", "Timeout", "Empty", "Failure")
    ) or ("." in name and name.rsplit(".", 1)[-1][:1].isupper())


def _has_frame(block: Block) -> bool:
    return any(_FRAME.match(line) for line in block.lines[-6:])
