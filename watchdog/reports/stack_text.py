"""Stacks as text, one for all processes that stand at the same place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

from watchdog.counting import counted
from watchdog.evidence import Evidence, Frame, Process, ThreadActivity, ThreadStack
from watchdog.findings import Diagnosis
from watchdog.guest import own_threads
from watchdog.reports import wording
from watchdog.reports.history import history_lines
from watchdog.reports.limits import Limits
from watchdog.reports.printable import one_line

_MAX_NATIVE_RUN = 3
_INSTALLED = re.compile(r"^.*/(?:site-packages|dist-packages|lib/python3\.\d+|lib)/(?=\S)")
_TEMPLATE = re.compile(r"(?<=\w)<[^<>]*>")
# Where an idle thread sleeps on any day; another place is worth a line.
_ORDINARY_WCHAN = ("", "0", "futex", "do_epoll_wait", "ep_poll", "do_poll", "poll_schedule")


@dataclass(frozen=True)
class StackText:
    """One block of a report.

    Attributes:
        title: Whose it is.
        text: Lines to show as they are, not yet escaped.
    """

    title: str
    text: str


def group_stacks(evidence: Evidence, diagnosis: Diagnosis, limits: Limits) -> list[StackText]:
    """A stack for each group, the culprits' first; a process outside of all is left out."""
    by_key = {process.key: process for process in evidence.processes}
    where = {culprit.process: culprit.where for culprit in diagnosis.verdict.culprits}
    blocks: list[StackText] = []
    for group in diagnosis.verdict.groups:
        if len(blocks) == limits.stacks:
            break
        members = [by_key[key] for key in group.processes if key in by_key and by_key[key].stacks]
        if not members:
            continue
        example = members[0]
        place = where.get(example.key, group.where)
        shared = f", shown for {example.key}" if len(group.processes) > 1 else ""
        title = f"{wording.group_label(group)}: {group.doing}{shared} ({_origin(example)})"
        blocks.append(StackText(title, stack_text(example, place, limits)))
    return blocks


def culprit_details(evidence: Evidence, diagnosis: Diagnosis, limits: Limits) -> list[StackText]:
    """What black box, ledger and kernel say of each culprit; empty parts are left out."""
    guilty = {culprit.process for culprit in diagnosis.verdict.culprits}
    members = [process for process in evidence.processes if process.key in guilty]
    blocks = [
        StackText(process.key, "\n".join(_detail_lines(process, limits)))
        for process in members[: limits.stacks]
    ]
    return [block for block in blocks if block.text]


def stack_text(process: Process, where: str, limits: Limits) -> str:
    """The latest sample, innermost call first, the telling thread first."""
    threads = wording.telling_threads(process, where)
    lines: list[str] = []
    for thread in threads[: limits.threads]:
        lines += [_thread_line(thread), *_frame_lines(thread.frames, limits.frames), ""]
    if len(threads) > limits.threads:
        lines.append(f"({counted(len(threads) - limits.threads, 'more thread')})")
    return "\n".join(lines).rstrip()


def frame_text(frame: Frame) -> str:
    """`function (file:line)` as py-spy prints it, clipped to 200 characters.

    Files of installed packages are told from the package on; a native symbol loses its
    template arguments, which can be pages long.
    """
    line = f":{frame.line}" if frame.line else ""
    function = _without_templates(frame.function) if frame.native else frame.function
    file = _INSTALLED.sub("", frame.file)
    return one_line(f"{function} ({file}{line})", 200)


def _without_templates(symbol: str) -> str:
    # From the inside out; a symbol nested deeper than this is clipped by its caller.
    for _ in range(12):
        shorter = _TEMPLATE.sub("", symbol)
        if shorter == symbol:
            break
        symbol = shorter
    return symbol


def _frame_lines(frames: tuple[Frame, ...], max_frames: int) -> list[str]:
    lines: list[str] = []
    for native, run in groupby(frames, key=lambda frame: frame.native):
        calls = list(run)
        shown = calls[:_MAX_NATIVE_RUN] if native else calls
        lines += [f"    {frame_text(frame)}" for frame in shown]
        if len(shown) < len(calls):
            lines.append(f"    ({counted(len(calls) - len(shown), 'more native call')})")
    if len(lines) > max_frames:
        lines[max_frames:] = [f"    ({counted(len(lines) - max_frames, 'more line')})"]
    return lines


def _thread_line(thread: ThreadStack) -> str:
    tid = f" {thread.os_thread_id}" if thread.os_thread_id is not None else ""
    active = {True: " (active)", False: " (idle)", None: ""}[thread.active]
    gil = ", holds the GIL" if thread.owns_gil else ""
    return f'Thread{tid}{active}: "{one_line(thread.name, 60)}"{gil}'


def _origin(process: Process) -> str:
    sample = process.stacks[-1]
    count = len(process.stacks)
    times = f"{count} samples" if count > 1 else "one sample"
    return ", ".join(part for part in (sample.source, sample.from_file, times) if part)


def _detail_lines(process: Process, limits: Limits) -> list[str]:
    lines = []
    if process.status != "unknown" or process.status_detail:
        # `stopped (T)` says `stopped` already.
        repeats = process.status_detail.lower().startswith(process.status)
        said = process.status_detail if repeats else f"{process.status} {process.status_detail}"
        lines.append(f"process: {said}".rstrip())
    lines += _memory_lines(process, limits)
    lines += _kernel_lines(process, limits)
    lines += _history_lines(process, limits)
    return [one_line(line, 200) for line in lines]


def _memory_lines(process: Process, limits: Limits) -> list[str]:
    lines = []
    for region in process.memory[: limits.entries]:
        size = f", {wording.size(region.num_bytes)}" if region.num_bytes is not None else ""
        count = f", {region.num_tensors} tensors" if region.num_tensors is not None else ""
        names = f": {', '.join(region.tensors[:3])}" if region.tensors else ""
        lines.append(f"memory {region.tag}: {region.residency}{size}{count}{names}")
    return lines


def _kernel_lines(process: Process, limits: Limits) -> list[str]:
    if not process.activity:
        return []
    # The main thread is told wherever it sleeps, our own threads nowhere.
    telling = [
        thread
        for thread in process.activity[-1].threads
        if thread.tid == process.pid
        or not (_is_ordinary(thread) or thread.name == own_threads.NAME)
    ]
    telling.sort(key=lambda thread: thread.tid != process.pid)
    return [
        f"kernel: thread {thread.tid} {thread.name} {thread.state} {thread.wchan}".rstrip()
        for thread in telling[: limits.threads]
    ]


def _is_ordinary(thread: ThreadActivity) -> bool:
    return thread.state in "SI" and any(
        thread.wchan == place or (place and thread.wchan.startswith(place))
        for place in _ORDINARY_WCHAN
    )


def _history_lines(process: Process, limits: Limits) -> list[str]:
    if process.position is None:
        return []
    lines = history_lines(process.position.history)[-limits.frames :]
    return ["marks, with their time before the look at it:", *lines] if lines else []
