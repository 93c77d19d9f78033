"""Marks for code that no adapter knows: which part of it is the weight sync, and its phases.

    with weight_sync():
        phase("pause_generation")
        engine.pause()
        phase("read_weights")
        ...

Nothing here raises into the caller or changes what it computes. With the watchdog off, a mark
costs a fraction of a microsecond.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from watchdog.guest.notices import notice_once
from watchdog.recording.recorder import OpenSection, active

_F = TypeVar("_F", bound=Callable[..., Any])
_OFF = ("", "0", "off", "false", "no")
_is_on = os.environ.get("MILES_WATCHDOG", "").strip().lower() not in _OFF


def weight_sync(name: str = "weight_sync", **about: object) -> Section:
    """Time a block or a function as one section.

    As a context manager: `with weight_sync():`. As a decorator: `@weight_sync()`, of plain and
    of async functions. Inside of an open section it counts as nested and changes nothing.

    Args:
        name: What the section is called in reports.
        about: What else is to be known about it; kept, not read.
    """
    return Section(name, about)


def phase(name: str) -> Phase:
    """Mark that a phase begins; it lasts until the next mark or the end of the section.

    As a context manager it also restores the outer phase at its end. Outside of a section it
    does nothing.
    """
    recorder = active.recorder
    if recorder is None:
        return _NO_PHASE
    try:
        return Phase(recorder.begin_phase(name))
    except Exception as error:
        _failed(error)
        return _NO_PHASE


class Phase:
    """A phase that has begun."""

    __slots__ = ("_outer",)

    def __init__(self, outer: str | None) -> None:
        self._outer = outer

    def __enter__(self) -> None:
        """Nothing: the phase began when it was marked."""

    def __exit__(self, *exception: object) -> None:
        if self._outer is not None:
            phase(self._outer)


_NO_PHASE = Phase(None)


class Section:
    """A section that is entered with `with`, or on each call of the function it decorates."""

    __slots__ = ("_about", "_name", "_open")

    def __init__(self, name: str, about: dict[str, object]) -> None:
        self._name = name
        self._about = about
        self._open: OpenSection | None = None

    def __enter__(self) -> None:
        if active.recorder is None and not _is_on:
            return
        try:
            self._open = _begin(self._name, self._about)
        except Exception as error:
            _failed(error)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        opened, self._open = self._open, None
        if opened is None:
            return
        try:
            _end(opened, kind.__name__ if kind is not None else "")
        except Exception as error:
            _failed(error)

    def __call__(self, function: _F) -> _F:
        """Decorate a function; each call is one section."""
        if asyncio.iscoroutinefunction(function):

            @functools.wraps(function)
            async def async_timed(*args: Any, **kwargs: Any) -> Any:
                with Section(self._name, self._about):
                    return await function(*args, **kwargs)

            return async_timed  # type: ignore[return-value]

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with Section(self._name, self._about):
                return function(*args, **kwargs)

        return timed  # type: ignore[return-value]


def _begin(name: str, about: dict[str, object]) -> OpenSection | None:
    # Not at the top: the first section of a process may be what starts its watch.
    from watchdog.process_watch import ensure_started

    watch = ensure_started()
    return watch.begin_section(name, about) if watch is not None else None


def _end(section: OpenSection, raised: str) -> None:
    from watchdog.process_watch import current_watch

    watch = current_watch()
    if watch is not None:
        watch.end_section(section, raised)


def _failed(error: Exception) -> None:
    if sys.is_finalizing():
        return  # modules are gone already; a mark in a destructor is too late for anybody
    notice_once("section", f"a mark failed, training goes on: {error!r}")
