"""Who called a collective: the innermost caller outside of torch and of the watchdog."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import CodeType, FrameType

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# A program has few places that call collectives; generated code may have many.
_MAX_KNOWN = 4096
_MAX_FRAMES = 24


class CallSites:
    """Finds call sites, and remembers them by code object and instruction.

    Code objects are kept by identity: their hash runs over all of their instructions. Line
    numbers are worked out once a place, for they cost more than all the rest.

    Args:
        text: Enters a text into the black box and returns its number.
    """

    def __init__(self, text: Callable[[str], int]) -> None:
        self._text = text
        # The code object in the value keeps its id from being used again.
        self._known: dict[tuple[int, int], tuple[int, CodeType]] = {}
        self._inner: dict[int, tuple[bool, CodeType]] = {}

    def number_of(self, frame: FrameType) -> int:
        """Return the number of the text `file:line function` for a caller.

        Args:
            frame: The frame that called the collective; it may be torch's own.
        """
        known = self._known.get((id(frame.f_code), frame.f_lasti))
        return known[0] if known is not None else self._walk(frame)

    def _walk(self, frame: FrameType) -> int:
        for _ in range(_MAX_FRAMES):
            if frame.f_back is None or not self._is_inner(frame.f_code):
                break
            frame = frame.f_back
        key = (id(frame.f_code), frame.f_lasti)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[key] = (self._text(_place(frame)), frame.f_code)
        return known[0]

    def _is_inner(self, code: CodeType) -> bool:
        known = self._inner.get(id(code))
        if known is None:
            path = code.co_filename
            inner = "/torch/" in path or path.startswith(_OURS) or path.endswith("/contextlib.py")
            if len(self._inner) >= _MAX_KNOWN:
                self._inner.clear()
            known = self._inner[id(code)] = (inner, code)
        return known[0]


def _place(frame: FrameType) -> str:
    return f"{_path(frame)}:{frame.f_lineno or 0} {frame.f_code.co_name}"


def _path(frame: FrameType) -> str:
    """The file from its package on, as the module's name tells; else its last four parts."""
    spec = frame.f_globals.get("__spec__")
    module = getattr(spec, "name", None) or frame.f_globals.get("__name__") or ""
    parts = frame.f_code.co_filename.split(os.sep)
    is_package = parts[-1] == "__init__.py"
    depth = module.count(".") + 1 + is_package if isinstance(module, str) else 0
    inside = parts[-depth:] if depth else []
    names = module.split(".") if depth else []
    if len(names) > 1 and inside[: len(names) - 1] == names[:-1]:
        return os.sep.join(inside)
    return os.sep.join(parts[-4:])
