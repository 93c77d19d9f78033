"""One line of an adapter's table. Nothing is imported here: every Python process reads tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Hook(NamedTuple):
    """One function or method to hook.

    Attributes:
        module: Module that defines it; it is patched as soon as that module has run.
        attribute: `function`, `Class.method`.
        what: `section` (a whole weight sync), `phase` (a step of it), `observe` (only looked at).
        name: Name of the phase; of the section, "" = `weight_sync`.
        then: Phase that begins when it returns; "" = the one before it.
        observe: Called after it returned, with args, kwargs and result. What it raises is
            reported and goes no further. It must not change anything that it is given.
        is_optional: Whether it is missing in some versions, so that its absence is no news.
    """

    module: str
    attribute: str
    what: str
    name: str = ""
    then: str = ""
    observe: Callable[[tuple[Any, ...], dict[str, Any], Any], None] | None = None
    is_optional: bool = True


def section(module: str, attribute: str, *, name: str = "", is_optional: bool = False) -> Hook:
    """A function that is a whole weight sync."""
    return Hook(module, attribute, "section", name, is_optional=is_optional)


def phases(module: str, name: str, *attributes: str, then: str = "") -> tuple[Hook, ...]:
    """Functions of one module that are the same phase."""
    return tuple(Hook(module, attribute, "phase", name, then) for attribute in attributes)


def observed(
    module: str,
    attribute: str,
    observe: Callable[[tuple[Any, ...], dict[str, Any], Any], None],
) -> Hook:
    """A function whose arguments or result are worth knowing."""
    return Hook(module, attribute, "observe", observe=observe)
