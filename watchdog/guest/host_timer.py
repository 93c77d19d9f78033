"""Whether the host itself uses `faulthandler`'s one timer, which cannot be asked."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

_host_uses_it = False
_original: Any = None


def watch(module: ModuleType) -> None:
    """Wrap `dump_traceback_later`, so that a call of the host is seen.

    Args:
        module: The module `faulthandler`, just imported.
    """
    global _original
    if _original is not None:
        return
    original = _original = module.dump_traceback_later

    @functools.wraps(original)
    def dump_traceback_later(*args: Any, **kwargs: Any) -> Any:
        global _host_uses_it
        _host_uses_it = True
        return original(*args, **kwargs)

    module.dump_traceback_later = dump_traceback_later  # type: ignore[attr-defined]


def is_used() -> bool:
    """Whether the host has armed the timer since `watch`, or nobody watched it."""
    return _host_uses_it or _original is None


def arm(after_s: float, **kwargs: Any) -> None:
    """Arm the timer for the watchdog."""
    _original(after_s, **kwargs)
