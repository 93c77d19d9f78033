"""The user's own command, once an incident."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

from watchdog.guest.own_threads import signals_of_main_thread

_SHELL_CHARACTERS = re.compile(r"[|&;<>()$`\\*?\n~#{}\[\]]")
_MAX_OUTPUT_BYTES = 1 << 20


def run_command(
    command: str, *, incident: Path, report: Path, timeout_s: float = 60.0
) -> tuple[str, bytes]:
    """Run it, and end it with all that it started when its time is over.

    A command with characters that mean something to a shell is run by `/bin/sh`, with the
    report's path as `$1`; any other one directly, with that path as its last argument. Either
    finds `MILES_WATCHDOG_INCIDENT` (the folder) and `MILES_WATCHDOG_REPORT` in its environment.
    It does not inherit the watchdog, nor a preloaded library.

    Returns:
        How it ended, as a sentence; and its output, both streams, at most 1 MiB.
    """
    environ = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environ |= {
        "MILES_WATCHDOG": "0",
        "MILES_WATCHDOG_INCIDENT": str(incident),
        "MILES_WATCHDOG_REPORT": str(report),
    }
    try:
        with signals_of_main_thread():
            process = subprocess.Popen(
                _arguments(command, report), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, env=environ, start_new_session=True,
            )  # fmt: skip
    except (OSError, ValueError) as error:
        return f"MILES_WATCHDOG_ON_STALL could not be started: {error}", b""
    deadline_s = time.monotonic() + timeout_s
    output = _output(process, deadline_s)
    try:
        status = process.wait(max(0.0, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        _end(process)
        return f"MILES_WATCHDOG_ON_STALL was ended after {timeout_s:g} s", output
    return f"MILES_WATCHDOG_ON_STALL ended with status {status}", output


def cannot_be_run(command: str) -> str:
    """Why the command cannot be started on this machine, "" where it can or a shell is to say."""
    if not command or _SHELL_CHARACTERS.search(command):
        return ""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return str(error)
    if not words or shutil.which(words[0]) is not None:
        return ""
    return f"there is no program {words[0]!r} that can be run"


def _arguments(command: str, report: Path) -> list[str]:
    if _SHELL_CHARACTERS.search(command):
        return ["/bin/sh", "-c", command, "miles-watchdog", str(report)]
    return [*shlex.split(command), str(report)]


def _output(process: subprocess.Popen[bytes], deadline_s: float) -> bytes:
    """What it says until it closes its output or its time is over; more than enough is lost."""
    assert process.stdout is not None
    kept = bytearray()
    with process.stdout as stream, selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while (left_s := deadline_s - time.monotonic()) > 0:
            # A grandchild may keep the pipe open after the command has ended.
            if not selector.select(min(left_s, 0.5)):
                if process.poll() is not None:
                    break
                continue
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                break
            kept += chunk[: _MAX_OUTPUT_BYTES - len(kept)]
    return bytes(kept)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait(5)
