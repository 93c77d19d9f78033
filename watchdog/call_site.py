"""Who called a collective: the innermost caller outside of torch and of the watchdog."""

from __future__ import annotations

import os
import sys
from types import CodeType

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Kept small: a program has few places that call collectives, generated code has many.
_MAX_SITES = 4096
_MAX_FRAMES = 24


class CallSites:
    """Finds call sites, and remembers them by code object and instruction.

    The line number is worked out once a place: it costs more than all the rest.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[CodeType, int], str] = {}
        self._inner: dict[CodeType, bool] = {}

    def of_caller(self, depth: int) -> str:
        """Return `file:line function` of the caller.

        Args:
            depth: How many frames to leave out from the start, 1 = the direct caller.
        """
        frame = sys._getframe(depth)
        inner = self._inner
        for _ in range(_MAX_FRAMES):
            code = frame.f_code
            is_inner = inner.get(code)
            if is_inner is None:
                is_inner = self._classify(code)
            if not is_inner or frame.f_back is None:
                break
            frame = frame.f_back
        key = (frame.f_code, frame.f_lasti)
        site = self._known.get(key)
        if site is None:
            site = self._remember(key, frame.f_lineno)
        return site

    def _classify(self, code: CodeType) -> bool:
        path = code.co_filename
        is_inner = "/torch/" in path or path.startswith(_OURS) or path.endswith("/contextlib.py")
        if len(self._inner) >= _MAX_SITES:
            self._inner.clear()
        self._inner[code] = is_inner
        return is_inner

    def _remember(self, key: tuple[CodeType, int], line: int | None) -> str:
        code = key[0]
        path = os.sep.join(code.co_filename.split(os.sep)[-4:])
        site = f"{path}:{line or 0} {code.co_name}"
        if len(self._known) >= _MAX_SITES:
            self._known.clear()
        self._known[key] = site
        return site
