"""Wrappers that do not show: like for like, results and exceptions untouched.

Ray decides by the kind of a method (plain, async, async generator) how it runs an actor, so a
wrapper is of the same kind as what it wraps. A generator is marked while it runs, not while
its consumer does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from watchdog.adapters.hook import Hook
from watchdog.guest.worker import run_guarded
from watchdog.process_watch import current_watch
from watchdog.recording.recorder import active
from watchdog.section import Section, phase


class _Phase:
    """A phase for the time of a `with` block, and possibly another one after it."""

    __slots__ = ("_name", "_outer", "_then")

    def __init__(self, name: str, then: str) -> None:
        self._name = name
        self._then = then
        self._outer: str | None = None

    def __enter__(self) -> None:
        open_section = active.recorder.open_section if active.recorder is not None else None
        if open_section is not None:
            self._outer = open_section.phase
            phase(self._name)

    def __exit__(self, *exception: object) -> None:
        if self._outer is not None:
            phase(self._then or self._outer)


class _FrameworkSection(Section):
    """A section that also tells the black box which framework runs here."""

    __slots__ = ("_framework",)

    def __init__(self, framework: str, name: str) -> None:
        super().__init__(name, {})
        self._framework = framework

    def __enter__(self) -> None:
        super().__enter__()
        watch = current_watch()
        if watch is not None and not watch.identity.framework:
            run_guarded(lambda: watch.set_framework(self._framework))


def wrapped(framework: str, hook: Hook, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that takes the place of `original`.

    Args:
        framework: Name for reports.
        hook: What it is to mark.
        original: A function of any kind: plain, generator, async, async generator.
    """
    if hook.what == "observe":
        return _observing(hook, original)

    def mark() -> Any:
        if hook.what == "section":
            return _FrameworkSection(framework, hook.name or "weight_sync")
        return _Phase(hook.name, hook.then)

    if inspect.isasyncgenfunction(original):
        return _async_generator(mark, original)
    if inspect.iscoroutinefunction(original):
        return _coroutine(mark, original)
    if inspect.isgeneratorfunction(original):
        return _generator(mark, original)

    @functools.wraps(original)
    def plain(*args: Any, **kwargs: Any) -> Any:
        with mark():
            return original(*args, **kwargs)

    return plain


def _observing(hook: Hook, original: Callable[..., Any]) -> Callable[..., Any]:
    observe = hook.observe
    assert observe is not None

    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def async_observed(*args: Any, **kwargs: Any) -> Any:
            result = await original(*args, **kwargs)
            run_guarded(lambda: observe(args, kwargs, result))
            return result

        return async_observed

    @functools.wraps(original)
    def observed(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        run_guarded(lambda: observe(args, kwargs, result))
        return result

    return observed


def _coroutine(mark: Callable[[], Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        with mark():
            return await original(*args, **kwargs)

    return coroutine


def _generator(mark: Callable[[], Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def generator(*args: Any, **kwargs: Any) -> Any:
        inner = original(*args, **kwargs)
        resume, value = inner.send, None
        while True:
            with mark():
                try:
                    item = resume(value)
                except StopIteration as stop:
                    return stop.value
            try:
                value = yield item
                resume = inner.send
            except GeneratorExit:
                inner.close()
                raise
            except BaseException as error:
                value, resume = error, inner.throw

    return generator


def _async_generator(mark: Callable[[], Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def generator(*args: Any, **kwargs: Any) -> Any:
        inner = original(*args, **kwargs)
        resume, value = inner.asend, None
        while True:
            with mark():
                try:
                    item = await resume(value)
                except StopAsyncIteration:
                    return
            try:
                value = yield item
                resume = inner.asend
            except GeneratorExit:
                await inner.aclose()
                raise
            except BaseException as error:
                value, resume = error, inner.athrow

    return generator
