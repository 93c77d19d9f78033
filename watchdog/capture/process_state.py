"""What the kernel says of a process: state, counters, and where each thread sleeps."""

from __future__ import annotations

import os
import signal
import time

from watchdog.capture import proc
from watchdog.capture.target import Part, Target
from watchdog.evidence import ActivitySample, Gap, ThreadActivity
from watchdog.guest import own_threads
from watchdog.masking import mask_argv
from watchdog.process_letters import STATUS_BY_LETTER

NAME = "process state"

_MAX_COMMAND_CHARS = 4000
_MAX_THREADS = 1000
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_DETAIL = {
    "D": "uninterruptible wait (D)",
    "T": "stopped (T)",
    "t": "stopped by a tracer (t)",
    "": "the process is gone",
}
_NOT_ALLOWED = "run as the user of the process, or as root with CAP_SYS_PTRACE"


def collect(target: Target) -> Part:
    """State, command line and one sample of the counters; of a dead process how it ended."""
    fields = proc.stat_fields(f"/proc/{target.pid}/stat")
    letter = fields[0] if fields else ""
    status = STATUS_BY_LETTER.get(letter, "unknown") if letter else "dead"
    if letter in ("", "X", "Z"):
        detail = _ending(fields) if letter == "Z" else _DETAIL.get(letter, "")
        return Part(status=status, status_detail=detail)
    activity, gaps = _activity(target, fields)
    try:
        words = " ".join(mask_argv(proc.command(target.pid)))[:_MAX_COMMAND_CHARS]
    except OSError:
        words = ""
    return Part(
        status=status,
        status_detail=_DETAIL.get(letter, ""),
        command=words,
        activity=(activity,),
        gaps=gaps,
    )


def _ending(fields: list[str]) -> str:
    # The wait status; 0 also where the reader may not trace the process (proc_pid_stat(5)).
    code = int(fields[49]) if len(fields) > 49 else 0
    if code & 0x7F:
        return f"killed by signal {code & 0x7F} ({_signal_name(code & 0x7F)}), not yet reaped"
    if code >> 8:
        return f"exit status {code >> 8}, not yet reaped"
    return "ended, not yet reaped"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "?"


def _activity(target: Target, fields: list[str]) -> tuple[ActivitySample, tuple[Gap, ...]]:
    gaps = []
    counters = _io(target)
    if counters is None:
        gaps.append(Gap(f"I/O counters of {target}", "/proc/<pid>/io was refused", _NOT_ALLOWED))
    num_files = _num_open_files(target.pid)
    if num_files is None:
        gaps.append(Gap(f"open files of {target}", "/proc/<pid>/fd was refused", _NOT_ALLOWED))
    threads = _threads(target.pid)
    if any(thread.state in "SD" for thread in threads) and not any(t.wchan for t in threads):
        gaps.append(
            Gap(
                f"kernel wait channels of {target}",
                "/proc/<pid>/task/<tid>/wchan reads 0 for every sleeping thread: "
                "refused, or the kernel does not keep them",
                _NOT_ALLOWED,
            )
        )
    sample = ActivitySample(
        taken_at_s=time.time(),
        cpu_s=_cpu_s(fields),
        read_bytes=counters.get("rchar") if counters else None,
        write_bytes=counters.get("wchar") if counters else None,
        rss_bytes=int(fields[21]) * _PAGE_BYTES if len(fields) > 21 else None,
        num_open_files=num_files,
        threads=threads,
    )
    return sample, tuple(gaps)


def _cpu_s(fields: list[str]) -> float | None:
    if len(fields) < 13:
        return None
    return (int(fields[11]) + int(fields[12])) / proc.CLOCK_TICKS


def _io(target: Target) -> dict[str, int] | None:
    """Counters of the process, without what the watchdog's own threads read and wrote in it."""
    # Thread by thread: threads of ours that have ended still count in the whole.
    folder = f"/proc/{target.pid}/task"
    total: dict[str, int] = {}
    try:
        for tid in os.listdir(folder)[:_MAX_THREADS]:
            if proc.read_text(f"{folder}/{tid}/comm").strip() != own_threads.NAME:
                for counter, value in (_counters(f"{folder}/{tid}/io") or {}).items():
                    total[counter] = total.get(counter, 0) + value
    except OSError:  # a thread ended meanwhile
        return _counters(f"/proc/{target.pid}/io")
    return total or None


def _counters(path: str) -> dict[str, int] | None:
    try:
        lines = proc.read_text(path).splitlines()
    except OSError:
        return None
    pairs = (line.partition(":") for line in lines)
    return {name: int(value) for name, _, value in pairs if value.strip().isdigit()}


def _num_open_files(pid: int) -> int | None:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def _threads(pid: int) -> tuple[ThreadActivity, ...]:
    try:
        tids = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return ()
    return tuple(filter(None, (_thread(pid, tid) for tid in tids[:_MAX_THREADS])))


def _thread(pid: int, tid: int) -> ThreadActivity | None:
    folder = f"/proc/{pid}/task/{tid}"
    try:
        text = proc.read_text(f"{folder}/stat")
    except OSError:
        return None  # it ended meanwhile
    fields = text.rpartition(")")[2].split()
    name = text.partition("(")[2].rpartition(")")[0]
    cpu_s = _cpu_s_in_ns(folder)
    if cpu_s is None:
        cpu_s = _cpu_s(fields)
    return ThreadActivity(tid, name, fields[0], _wchan(folder), cpu_s)


def _cpu_s_in_ns(folder: str) -> float | None:
    """CPU time of a thread where the kernel counts it in nanoseconds: `stat` has ticks of 10 ms.

    A thread that sends over a slow link runs for microseconds at a time.

    Source:
        Documentation/scheduler/sched-stats.rst of Linux: `/proc/<pid>/schedstat`, first field.
    """
    try:
        words = proc.read_text(f"{folder}/schedstat").split()
    except OSError:
        return None
    # All zero where the kernel was built without these counters.
    return int(words[0]) / 1e9 if words and words[0] != "0" else None


def _wchan(folder: str) -> str:
    try:
        name = proc.read_text(f"{folder}/wchan").strip()
    except OSError:
        return ""
    return "" if name == "0" else name
