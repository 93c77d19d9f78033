"""py-spy, from a child process: the stacks of any Python process, also one that cannot speak.

Non-blocking, so that the process that is looked at is never stopped: what it reads may be torn,
then it is read again. With native frames there is no such mode: py-spy stops the process for
about a second. That is for suspects only, and never for a process that is stopped already.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

from watchdog.capture import child, proc, ptrace
from watchdog.evidence import Frame, Gap, StackSample, ThreadStack
from watchdog.masking import mask_text, mask_value

_ATTEMPTS = 3
_HUNG_FOR_S = 60.0
_hung_at_s: dict[int, float] = {}
_MAX_LOCAL_CHARS = 500
_REFUSED = ("permission denied", "operation not permitted", "os error 1)", "os error 13)")
_NOT_PYTHON = ("find python version", "find interpreter", "find a python interpreter")


class _DumpError(Exception):
    """No dump this time.

    Attributes:
        remedy: What to do about it.
        is_final: Whether asking again is pointless.
    """

    def __init__(self, why: str, remedy: str = "", *, is_final: bool = True) -> None:
        super().__init__(why)
        self.remedy = remedy
        self.is_final = is_final


def locate() -> str | None:
    """The py-spy that was installed beside this Python, else the one on the PATH."""
    beside = Path(sys.executable or "python").parent
    for folder in (beside, Path(sysconfig.get_path("scripts"))):
        if os.access(folder / "py-spy", os.X_OK):
            return str(folder / "py-spy")
    return shutil.which("py-spy")


def dump(
    pid: int, *, native: bool = False, timeout_s: float = 4.0, _program: str | None = None
) -> StackSample | Gap:
    """The stacks of all Python threads of a process.

    Args:
        pid: A process of this host.
        native: With C and C++ frames; stops the process while it is read.
        timeout_s: For all attempts together (s); py-spy is killed at its end.

    Returns:
        The sample, or the gap: py-spy is missing, was refused, took too long, or the process is
        gone, stopped (native only) or no Python process.
    """
    now_s = time.monotonic()
    deadline_s = now_s + timeout_s
    what = f"{'native ' if native else ''}stacks of pid {pid} by py-spy"
    # Asked again at once it would hang again, and the report would come later for it.
    if now_s - _hung_at_s.get(pid, -_HUNG_FOR_S) < _HUNG_FOR_S:
        return Gap(what, "py-spy did not answer shortly before and was not asked again")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _dump_once(pid, native, deadline_s, _program or locate())
        except _DumpError as error:
            if error.is_final or attempt == _ATTEMPTS:
                return Gap(what, str(error), error.remedy)
    raise AssertionError("unreachable")


def sample_of_json(text: str, pid: int, *, native: bool = False) -> StackSample:
    """Read what `py-spy dump --json` prints.

    Raises:
        ValueError: It is not that, or lists no frame.
    """
    data = json.loads(text)
    if not isinstance(data, list) or not data:
        raise ValueError("py-spy listed no thread")
    threads = [_thread(entry, pid) for entry in data if isinstance(entry, dict)]
    if not any(thread.frames for thread in threads):
        raise ValueError("py-spy listed no frame")
    threads.sort(key=lambda thread: thread.os_thread_id != pid and thread.name != "MainThread")
    source = "py-spy --native" if native else "py-spy"
    return StackSample(tuple(threads), source, taken_at_s=time.time())


def _dump_once(pid: int, native: bool, deadline_s: float, program: str | None) -> StackSample:
    if program is None:
        raise _DumpError("py-spy is not installed", f"{sys.executable} -m pip install py-spy")
    state = proc.state(pid)
    if state in ("", "Z", "X"):
        raise _DumpError("the process is a zombie" if state == "Z" else "the process is gone")
    if native and state in ("T", "t"):
        # Attaching to a stopped process fails, and may leave it in a state that is not ours.
        raise _DumpError(f"the process is stopped ({state})")
    mode = "--native" if native else "--nonblocking"
    command = [program, "dump", "--pid", str(pid), "--json", "--full-filenames", mode]
    done = _run(command, pid, deadline_s, native)
    if done.status in (-signal.SIGKILL, 128 + signal.SIGKILL):
        raise _hung(command, pid)
    if done.status != 0:
        raise _failure(done.errors, pid)
    try:
        return sample_of_json(done.output, pid, native=native)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _DumpError(f"py-spy's answer is unusable: {error}", is_final=False) from error


def _run(command: list[str], pid: int, deadline_s: float, native: bool) -> child.Answer:
    left_s = max(0.05, deadline_s - time.monotonic())
    # While this process itself is read with native frames, all its threads stand still, the one
    # that counts the time too: were py-spy to hang then, nobody would end it, and training would
    # hang with it.
    guard = child.ended_by_itself(left_s)
    if native and not guard and pid == os.getpid():
        raise _DumpError("without the command `timeout` a process must not stop itself")
    try:
        return child.answer([*guard, *command], left_s)
    except TimeoutError:
        if native:
            _continue_if_left_stopped(pid)
        raise _hung(command, pid) from None
    except child.TooMuchError as error:
        raise _DumpError(f"py-spy's answer is unusable: {error}, and was ended") from error
    except OSError as error:
        raise _DumpError(f"py-spy cannot be started: {error}") from error


def _hung(command: list[str], pid: int) -> _DumpError:
    _hung_at_s[pid] = time.monotonic()
    return _DumpError(
        "py-spy did not answer in time and was ended", f"look by hand: {' '.join(command)}"
    )


def _continue_if_left_stopped(pid: int) -> None:
    # py-spy attaches by a stop signal; killed between signal and detaching, it leaves the signal.
    # The process ran before (`_dump_once` looked), so running is what it is brought back to.
    deadline_s = time.monotonic() + 0.2
    while time.monotonic() < deadline_s:
        if proc.state(pid) == "T":
            os.kill(pid, signal.SIGCONT)
            return
        time.sleep(0.02)


def _failure(stderr: str, pid: int) -> _DumpError:
    lower = stderr.lower()
    why = _cause(stderr)
    if not proc.state(pid):
        return _DumpError("the process is gone")
    if any(words in lower for words in _REFUSED):
        return _DumpError(f"py-spy was refused: {why}", ptrace.how_to_allow())
    if any(words in lower for words in _NOT_PYTHON):
        return _DumpError("it is not a Python process, or of a version that py-spy does not know")
    return _DumpError(f"py-spy failed: {why}", is_final=False)


def _cause(stderr: str) -> str:
    # `Error: <what>`, then numbered causes, then a stack of py-spy's own.
    lines = [line.strip() for line in stderr.split("Stack backtrace:")[0].splitlines()]
    said = [line for line in lines if line and line != "Caused by:"]
    return mask_text("; ".join(said)[:300]) or "no word why"


def _thread(entry: dict[str, Any], pid: int) -> ThreadStack:
    # Names are kept by `threading`: a process that never imported it has none.
    unnamed = "MainThread" if entry.get("os_thread_id") == pid else ""
    return ThreadStack(
        name=str(entry.get("thread_name") or unnamed),
        frames=tuple(_frame(frame) for frame in entry.get("frames") or ()),
        os_thread_id=entry.get("os_thread_id"),
        active=entry.get("active"),
        owns_gil=entry.get("owns_gil"),
    )


def _frame(entry: dict[str, Any]) -> Frame:
    native = entry.get("module") is not None
    name, file = str(entry.get("name") or ""), str(entry.get("filename") or "")
    return Frame(
        # py-spy gives the qualified name where Python keeps one: `Thread.run`.
        function=name if native else name.rpartition(".")[2],
        file=file,
        line=int(entry.get("line") or 0),
        native=native,
        locals={
            str(local["name"]): mask_value(
                str(local["name"]), str(local.get("repr") or "")[:_MAX_LOCAL_CHARS]
            )
            for local in entry.get("locals") or ()
        },
    )
