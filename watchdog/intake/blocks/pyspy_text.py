"""py-spy's text: `py-spy dump --pid N`, also with `--native`, `--locals`, many in one file."""

from __future__ import annotations

import re
from dataclasses import replace

from watchdog.evidence import Frame, StackSample, ThreadStack
from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, Who
from watchdog.intake.prefixes import who_by_process_name
from watchdog.intake.stacks import MAX_FRAMES, MAX_THREADS, clipped_locals, main_first
from watchdog.masking import mask_text

LINE_LITERALS = ("Process ", "Thread ")

_PROCESS = re.compile(r"Process (\d{1,10}): (.*)$")
_THREAD = re.compile(
    r"\s*Thread (?P<tid>\d+|0x[0-9A-Fa-f]+) \((?P<state>idle|active)?(?P<gil>\+?gil)?"
    r"[^)]{0,40}\)(?:: \"(?P<name>.*)\")?\s*$"
)
_FRAME = re.compile(r"\s{2,}(?P<function>\S.{0,1000}?) \((?P<where>[^()]{1,1000})\)\s*$")
_LOCALS = re.compile(r"\s+(?:Arguments|Locals):\s*$")
_VALUE = re.compile(r"\s+([A-Za-z_]\w{0,200}): (.*)$")
_NATIVE_FILE = re.compile(r"\.so(?:\.[\w.]+)?$|\.abi3\.so$|^python3[\w.]*$|^lib[\w.+-]+$")


def opens(text: str) -> bool:
    """A `Process N: command` line, or the first thread of a dump without one."""
    if text.startswith("Process "):
        return _PROCESS.match(text) is not None
    return text.startswith("Thread ") and _THREAD.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """Threads, frames, values and the blank lines between them."""
    if not text.strip():
        return True
    if text[0] in " \t":
        return True
    if text.startswith("Python v"):
        return len(block.lines) <= 3
    return text.startswith("Thread ") and _THREAD.match(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """One stack sample of one process."""
    head = _PROCESS.match(block.lines[0])
    command = mask_text(head[2].strip())[:2000] if head else ""
    threads = _threads(block.lines)
    pid = int(head[1]) if head else _pid_of(threads)
    who = Who(pid=pid, command=command, by=("py-spy header",) if head else ())
    who = who.or_else(who_by_process_name(command)).or_else(block.context.who)
    who = who.or_else(block.first.who if not head else Who(host=block.first.who.host))
    native = any(frame.native for thread in threads for frame in thread.frames)
    context = block.context
    parts.add_process(
        replace(
            block.part(who),
            stack=StackSample(
                threads=main_first(threads),
                source="py-spy --native" if native else "py-spy",
                from_file=context.file,
            ),
        )
    )


def _pid_of(threads: list[ThreadStack]) -> int | None:
    for thread in threads:
        if thread.name == "MainThread":
            return thread.os_thread_id
    return None


def _threads(lines: list[str]) -> list[ThreadStack]:
    threads: list[ThreadStack] = []
    frames: list[Frame] = []
    header: re.Match[str] | None = None
    in_locals = False
    for text in [*lines, None]:
        match = _THREAD.match(text) if text is not None else None
        if match or text is None:
            if header and len(threads) < MAX_THREADS:
                threads.append(_thread(header, frames))
            header, frames, in_locals = match, [], False
        elif _LOCALS.match(text):
            in_locals = True
        elif in_locals and frames and (value := _VALUE.match(text)):
            clipped_locals(frames[-1].locals, value[1], value[2])
        elif (frame := _frame(text)) and len(frames) < MAX_FRAMES:
            frames.append(frame)
            in_locals = False
    return threads


def _thread(header: re.Match[str], frames: list[Frame]) -> ThreadStack:
    state, tid = header["state"], header["tid"]
    number = None if tid.startswith("0x") else int(tid)
    return ThreadStack(
        name=(header["name"] or "")[:200],
        frames=tuple(frames),
        os_thread_id=number if number is not None and number < 2**31 else None,
        active=None if state is None else state == "active",
        owns_gil=True if header["gil"] else None,
    )


def _frame(text: str) -> Frame | None:
    match = _FRAME.match(text)
    if not match:
        return None
    where, _, line = match["where"].rpartition(":")
    if where and line.isdigit() and len(line) < 9:
        native = bool(_NATIVE_FILE.search(where.rsplit("/", 1)[-1])) or where.endswith(
            (".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".rs")
        )
        return Frame(match["function"], where, int(line), native=native)
    where = match["where"]
    return Frame(match["function"], where, 0, native=bool(_NATIVE_FILE.search(where)))
