"""Python tracebacks, also remote ones of Ray and chained ones: where an error came from."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block
from watchdog.intake.log_lines.table import KNOWN_LINES
from watchdog.intake.parts import Parts, RawEvent
from watchdog.masking import mask_text

LINE_LITERALS = ("Traceback (most recent call last)",)
MAX_FRAMES_KEPT = 40
# Lines of somebody else without a prefix, and empty ones, that may stand inside a traceback.
MAX_FOREIGN = 24

_FRAME = re.compile(r'\s*File "(?P<file>[^"]{1,1000})", line (?P<line>\d{1,8}), in (?P<name>.+)$')
_EXCEPTION = re.compile(
    r"(?P<type>[A-Za-z_][\w.]{0,200}(?:\([\w., ]{1,200}\))?)(?:: (?P<message>.*))?$"
)
_REMOTE_TASK = re.compile(r"(ray::[\w.]+)\(\) \(pid=(\d+), ip=([\w.:]+)")


def opens(text: str) -> bool:
    """The header, wherever in the line it stands."""
    return "Traceback (most recent call last)" in text


def continues(text: str, block: Block) -> bool:
    """Indented lines, the exception's line, the frames of a remote error, and a little noise."""
    if text[:1] in (" ", "\t") and text.strip():
        return True
    ended = len(block.lines) > 1 and any(_is_exception(line) for line in block.lines[1:])
    if not text.strip():
        return not ended and _num_foreign(block) < MAX_FOREIGN
    if opens(text):
        return False
    if ended:
        # Ray prints the remote frames behind the exception, and the exception again.
        return _is_exception(text) and _has_frame(block)
    return _is_exception(text) or _num_foreign(block) < MAX_FOREIGN


def _num_foreign(block: Block) -> int:
    return sum(line[:1] not in (" ", "\t") for line in block.lines[1:])


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
    # Other lines that got between, and the last line itself, mean what they mean anywhere.
    for end in ends[-MAX_FOREIGN - 2 :]:
        for kind, more in KNOWN_LINES.events(end):
            text = mask_text(end)[:2000]
            parts.add_event(RawEvent(kind, text, event.file, event.line, event.moment, who, more))


def _is_exception(text: str) -> bool:
    match = _EXCEPTION.match(text)
    if not match:
        return False
    name = match["type"]
    if name.endswith("Warning"):
        return False
    return name.split("(")[0].endswith(
        ("Error", "Exception", "Interrupt", "Exit", "Timeout", "Empty", "Failure")
    ) or ("." in name and name.rsplit(".", 1)[-1][:1].isupper())


def _has_frame(block: Block) -> bool:
    return any(_FRAME.match(line) for line in block.lines[-6:])
