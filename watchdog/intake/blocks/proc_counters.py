"""`/proc/<pid>/status`, `io`, `wchan` and `stack`, as people print them in a shell."""

from __future__ import annotations

import re
from dataclasses import replace

from watchdog.evidence import ActivitySample, ThreadActivity
from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, RawEvent, Who
from watchdog.process_letters import STATUS_BY_LETTER

LINE_LITERALS = ()  # not what logs hold

_PAIR = re.compile(r"(?P<name>[A-Za-z_]\w{1,40}):[\t ]+(?P<value>\S.*)$")
_OPENERS = (
    "Name",
    "Umask",
    "State",
    "Tgid",
    "Pid",
    "VmRSS",
    "VmPeak",
    "rchar",
    "wchar",
    "syscr",
    "read_bytes",
    "write_bytes",
    "cancelled_write_bytes",
    "CapInh",
    "CapEff",
    "voluntary_ctxt_switches",
)
_IO = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes")
_WCHAN = re.compile(r"[a-z_][a-z0-9_.]{3,60}$")
_STACK = re.compile(r"\[<[0-9a-f]*>\] (?P<function>[\w.]{2,100})(?:\+0x|$)")
# CAP_SYS_PTRACE of linux/capability.h
_PTRACE_BIT = 19


def opens(text: str) -> bool:
    """A line of `status` or `io`, or the first of a kernel stack."""
    match = _PAIR.match(text)
    if match:
        return match["name"] in _OPENERS and ("\t" in text or match["name"] in _IO)
    return _STACK.match(text) is not None


def continues(text: str, block: Block) -> bool:
    """More such lines, or a bare kernel function: `wchan`."""
    return bool(_PAIR.match(text) or _STACK.match(text) or _WCHAN.match(text))


def parse(block: Block, parts: Parts) -> None:
    """One sample of counters, the process's state, and its capabilities as an event."""
    values = {match["name"]: match["value"] for line in block.lines if (match := _PAIR.match(line))}
    stack = [match["function"] for line in block.lines if (match := _STACK.match(line))]
    wchan = next((line for line in block.lines if _WCHAN.match(line)), stack[0] if stack else "")
    pid = _number(values.get("Pid") or values.get("Tgid"))
    context = block.context
    who = context.who if pid is None else Who(pid=pid, by=("/proc/<pid>/status",))
    if pid is not None and context.who.pid == pid:
        who = who.or_else(context.who)
    state = values.get("State", "")[:1]
    sample = ActivitySample(
        read_bytes=_number(values.get("read_bytes")) or _number(values.get("rchar")),
        write_bytes=_number(values.get("write_bytes")) or _number(values.get("wchar")),
        rss_bytes=_kilobytes(values.get("VmRSS")),
        threads=(ThreadActivity(tid=who.pid or 0, state=state, wchan=wchan),)
        if state or wchan
        else (),
    )
    parts.add_process(
        replace(
            block.part(who),
            activity=sample,
            status=STATUS_BY_LETTER.get(state, "unknown"),
            status_detail=values.get("State", "")[:80] if state not in ("R", "S", "I") else "",
        )
    )
    _capabilities(values, block, who, parts)


def _capabilities(values: dict[str, str], block: Block, who: Who, parts: Parts) -> None:
    kept: dict[str, str] = {
        name: values[name][:80]
        for name in ("CapEff", "Seccomp", "NoNewPrivs", "Threads", "voluntary_ctxt_switches")
        if name in values
    }
    effective = kept.get("CapEff", "")
    if re.fullmatch(r"[0-9a-fA-F]{8,16}", effective):
        may = int(effective, 16) >> _PTRACE_BIT & 1
        kept["cap_sys_ptrace"] = "yes" if may else "no"
    if kept:
        context = block.context
        text = ", ".join(f"{name} {value}" for name, value in kept.items())
        event = RawEvent("proc_status", text, context.file, block.number, context.moment, who, kept)
        parts.add_event(replace(event, who=who.or_else(context.file_who)))


def _number(text: str | None) -> int | None:
    match = re.match(r"\d{1,18}", text or "")
    return int(match[0]) if match else None


def _kilobytes(text: str | None) -> int | None:
    number = _number(text)
    return number * 1024 if number is not None else None
