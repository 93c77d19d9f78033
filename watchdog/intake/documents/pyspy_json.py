"""py-spy's JSON: `py-spy dump --json`, a list of threads."""

from __future__ import annotations

import json
import re
from typing import Any

from watchdog.evidence import Frame, StackSample, ThreadStack
from watchdog.intake.blocks import Context
from watchdog.intake.parts import Parts, ProcessPart, Who
from watchdog.intake.prefixes import who_by_process_name
from watchdog.intake.stacks import MAX_FRAMES, MAX_THREADS, clipped_locals, main_first

_NATIVE = re.compile(r"\.so(\.|$)|^lib|\.(c|cc|cpp|cu|h)$")


def score(head: str) -> float:
    """A list whose objects have `frames` and a thread's name or id."""
    start = head.lstrip()[:4000]
    if not start.startswith(("[", "{")) or '"frames"' not in start:
        return 0.0
    return 0.95 if '"thread_id"' in start or '"os_thread_id"' in start else 0.3


def parse(text: str, context: Context, parts: Parts) -> None:
    """One stack sample for each pid in the list."""
    data = json.loads(text)
    threads = data if isinstance(data, list) else data.get("threads")
    if not isinstance(threads, list):
        raise ValueError("no list of threads")
    by_pid: dict[int | None, list[dict[str, Any]]] = {}
    for thread in threads[: MAX_THREADS * 4]:
        if isinstance(thread, dict) and isinstance(thread.get("frames"), list):
            by_pid.setdefault(_whole(thread.get("pid")), []).append(thread)
    if not by_pid:
        raise ValueError("no thread with frames")
    for pid, own in by_pid.items():
        command = _command(own)
        who = Who(pid=pid, command=command, by=("py-spy JSON",))
        parts.add_process(
            ProcessPart(
                who=who.or_else(who_by_process_name(command)).or_else(context.who),
                file_who=context.file_who,
                file=context.file,
                moment=context.moment,
                order=context.order,
                stack=StackSample(
                    threads=main_first([_thread(thread) for thread in own[:MAX_THREADS]]),
                    source=_source(own),
                    from_file=context.file,
                ),
            )
        )


def _command(threads: list[dict[str, Any]]) -> str:
    info = threads[0].get("process_info")
    found = info.get("command_line") if isinstance(info, dict) else None
    return found[:2000] if isinstance(found, str) else ""


def _source(threads: list[dict[str, Any]]) -> str:
    frames = [frame for thread in threads for frame in thread["frames"][:MAX_FRAMES]]
    native = any(isinstance(frame, dict) and _is_native(frame) for frame in frames)
    return "py-spy --native" if native else "py-spy"


def _thread(thread: dict[str, Any]) -> ThreadStack:
    frames = [_frame(frame) for frame in thread["frames"][:MAX_FRAMES] if isinstance(frame, dict)]
    name, active, gil = thread.get("thread_name"), thread.get("active"), thread.get("owns_gil")
    return ThreadStack(
        name=name[:200] if isinstance(name, str) else "",
        frames=tuple(frames),
        os_thread_id=_whole(thread.get("os_thread_id")),
        active=active if isinstance(active, bool) else None,
        owns_gil=gil if isinstance(gil, bool) else None,
    )


def _frame(frame: dict[str, Any]) -> Frame:
    file = frame.get("short_filename") or frame.get("filename")
    values: dict[str, str] = {}
    found = frame.get("locals")
    for local in found[:100] if isinstance(found, list) else ():
        if isinstance(local, dict) and isinstance(local.get("name"), str):
            clipped_locals(values, local["name"][:200], str(local.get("repr"))[:1000])
    return Frame(
        function=str(frame.get("name") or "")[:1000],
        file=file[:1000] if isinstance(file, str) else "",
        line=_whole(frame.get("line")) or 0,
        native=_is_native(frame),
        locals=values,
    )


def _is_native(frame: dict[str, Any]) -> bool:
    file = frame.get("filename")
    return isinstance(file, str) and bool(_NATIVE.search(file.rsplit("/", 1)[-1]))


def _whole(value: object) -> int | None:
    ok = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if ok and isinstance(value, int) else None
