"""A short-lived program whose answer is read: bounded in time and size, and never left behind."""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from watchdog.guest.own_threads import signals_of_main_thread

MAX_OUTPUT_BYTES = 16_000_000
"""A dump of a thousand threads has a few megabytes."""

_MAX_ERROR_BYTES = 65_536
_CHUNK_BYTES = 65_536


class Answer(NamedTuple):
    """What a program said.

    Attributes:
        status: Its exit status, negative = the signal.
        output: Its standard output.
        errors: The start of its standard error.
    """

    status: int
    output: str
    errors: str


class TooMuchError(Exception):
    """It wrote more than anybody wants to read, and was ended."""


def ended_by_itself(seconds: float) -> list[str]:
    """A command prefix that ends a program, and what it started, even if the caller cannot.

    Empty where this machine has no `timeout`.
    """
    timeout = shutil.which("timeout")
    return [timeout, "-s", "KILL", str(max(1, round(seconds)))] if timeout is not None else []


def answer(
    command: Sequence[str], timeout_s: float, *, max_bytes: int = MAX_OUTPUT_BYTES
) -> Answer:
    """Run a program in a session of its own, all of which is gone when this returns.

    Args:
        command: Program and arguments.
        timeout_s: Time for all of it (s).
        max_bytes: Most that is read of its standard output.

    Raises:
        TimeoutError: It did not end in time.
        TooMuchError: It said more than that.
        OSError: It cannot be started.
    """
    # A preloaded library is meant for the trainer; it must not come to life in this program.
    environ = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    deadline_s = time.monotonic() + timeout_s
    # A thread of ours takes no signals; a program that inherited that could not be asked to end.
    with signals_of_main_thread():
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environ, start_new_session=True,
        )  # fmt: skip
    with process:
        end = _session_ender(process)
        atexit.register(end)
        try:
            output, errors = _said(process, deadline_s, max_bytes)
            process.wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"no end within {timeout_s:.1f} s") from None
        finally:
            # The whole session: a guard that is killed alone leaves its program behind.
            end()
            atexit.unregister(end)
    return Answer(
        process.returncode, output.decode(errors="replace"), errors.decode(errors="replace")
    )


def _session_ender(process: subprocess.Popen[bytes]) -> Callable[[], None]:
    def end() -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    return end


def _said(
    process: subprocess.Popen[bytes], deadline_s: float, max_bytes: int
) -> tuple[bytearray, bytearray]:
    assert process.stdout is not None
    assert process.stderr is not None
    output, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, output)
        selector.register(process.stderr, selectors.EVENT_READ, errors)
        while selector.get_map():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("no end in time")
            for key, _ in selector.select(left_s):
                data = os.read(key.fd, _CHUNK_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.data is output:
                    output += data
                elif len(errors) < _MAX_ERROR_BYTES:
                    errors += data
            if len(output) > max_bytes:
                raise TooMuchError(f"it wrote more than {max_bytes / 1e6:.0f} MB")
    return output, errors
