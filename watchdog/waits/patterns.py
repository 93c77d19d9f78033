"""What a row of a frame table is, and how a stack is matched against the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from watchdog.evidence import Frame

WaitKind = Literal[
    "collective",
    "rendezvous",
    "store",
    "rpc",
    "weight_read",
    "paused_memory",
    "memory_switch",
    "lock",
    "gil_held",
    "prompt",
    "file_wait",
    "file_io",
    "slow_work",
    "compute",
    "device_sync",
    "engine_step",
    "queue",
    "await",
    "sleep",
    "cleanup",
    "idle",
    "stopped",
    "dead",
    "no_answer",
    "unknown",
]
"""What a process is doing, seen from the others.

`collective`: inside a call that needs its peers. `rendezvous`: building a group or communicator.
`store`: a key of the rendezvous store. `rpc`: an answer of another process. `weight_read`: reading
its own weights. `paused_memory`: the kernel blocks a read of released memory. `memory_switch`:
pausing or resuming memory. `lock`: a lock of its own process or machine. `gil_held`: blocked in C
with the GIL. `prompt`: a person's answer at a debugger. `file_wait`: a file that somebody else
must write. `file_io`: reading or writing. `slow_work`: compiling, loading. `compute`: training or
generating. `device_sync`: waiting for the device, for whom is not told. `engine_step`: a step of
an engine's scheduler. `queue`, `await`: work of another thread or coroutine. `cleanup`: on the way
out after an error. `idle`: nothing to do. `stopped`, `dead`, `no_answer`: as the kernel or the
silence says."""


@dataclass(frozen=True)
class Pattern:
    """One row of a table: which frame means what.

    Attributes:
        kind: What a process with this frame is doing.
        function: Regular expression for the whole function name.
        file: Regular expression searched in the file, "" = any.
        operation: Name of the operation; "" = the function's name.
        under: Regular expression that some frame further out must match (function or file),
            "" = none needed.
        not_under: Regular expression that no frame further out may match, "" = none.
    """

    kind: WaitKind
    function: str
    file: str = ""
    operation: str = ""
    under: str = ""
    not_under: str = ""

    def matches(self, frame: Frame, outer: tuple[Frame, ...]) -> bool:
        """Whether the frame is meant; `outer` are its callers, innermost first."""
        if not _whole(self.function).fullmatch(frame.function):
            return False
        if self.file and not _whole(self.file).search(frame.file):
            return False
        if self.under and not _anywhere(self.under, outer):
            return False
        return not (self.not_under and _anywhere(self.not_under, outer))


@lru_cache(maxsize=2048)
def _whole(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def _anywhere(expression: str, frames: tuple[Frame, ...]) -> bool:
    wanted = _whole(expression)
    return any(wanted.search(frame.function) or wanted.search(frame.file) for frame in frames)


def first_match(frame: Frame, outer: tuple[Frame, ...], table: Iterable[Pattern]) -> Pattern | None:
    """The first row of the table that means this frame, or `None`."""
    return next((row for row in table if row.matches(frame, outer)), None)


_INSTALLED = re.compile(r"^.*?/(?:site|dist)-packages/|^.*?/lib(?:64)?/python3\.\d+/")
_LIBRARIES = re.compile(
    r"^(torch|ray|asyncio|concurrent|multiprocessing|http|urllib3?|requests|httpx|httpcore|aiohttp"
    r"|anyio|uvicorn|starlette|zmq|accelerate|wrapt|click|importlib|xmlrpc|socketserver"
    r")(/|\.py$)|(^|/)watchdog/(adapters|section|monitor|call_site)(/|\.py$)"
    r"|^[a-z_]+\.so|\.so(\.\d+)*$|^<|^python3"
    r"|^(threading|selectors|socket|ssl|queue|subprocess|contextlib|functools|runpy|socketserver"
    r"|_weakrefset|weakref)\.py$|\.(c|cc|cpp|cu|h|hpp|pyx)$"
)
_WRAPPERS = re.compile(
    r"reloadable_process_group\.py$|tracking_utils/|utils/timer\.py$|utils/nsys\.py$"
    r"|single_controller/|profiling\.py$|c10d_logger\.py$|_contextlib\.py$"
)


def package_path(path: str) -> str:
    """The path from the package on: where it is installed is left out."""
    return _INSTALLED.sub("", path)


def is_library(frame: Frame) -> bool:
    """Whether the frame says nothing about whose code waits: native, library or wrapper."""
    path = package_path(frame.file)
    return frame.native or bool(_LIBRARIES.search(path) or _WRAPPERS.search(path))


def own_frames(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """The frames of the user's and the framework's own code, innermost first."""
    return tuple(f for f in frames if f.function != "<module>" and not is_library(f))


def program_frames(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """The top level of the user's program: the place, where no function of theirs is in the way."""
    return tuple(f for f in frames if f.function == "<module>" and not is_library(f))
