"""Applies the tables: replaces what they name, as soon as its module has been imported.

A name that is missing costs one warning. Nothing here raises into the importing program.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from watchdog.adapters import ADAPTERS
from watchdog.adapters.hook import Hook
from watchdog.guest.import_hooks import when_imported


def register_all() -> None:
    """Register every table; a table that cannot be read is left out."""
    for name in ADAPTERS:
        try:
            adapter = importlib.import_module(f"watchdog.adapters.{name}")
            register(adapter.FRAMEWORK, adapter.HOOKS)
        except Exception as error:
            sys.stderr.write(f"[miles-watchdog] adapter {name} left out: {error!r}\n")


def register(framework: str, hooks: Iterable[Hook]) -> None:
    """Let the hooks be applied when their modules are imported, or now where they are already.

    Args:
        framework: Name of the framework for reports, "" for a library.
        hooks: Lines of its table.
    """
    by_module: dict[str, list[Hook]] = {}
    for hook in hooks:
        by_module.setdefault(hook.module, []).append(hook)
    for module_name, of_module in by_module.items():
        when_imported(module_name, _patcher(framework, of_module))


def _patcher(framework: str, hooks: list[Hook]) -> Callable[[ModuleType], None]:
    def patch(module: ModuleType) -> None:
        # Only now: a process that imports no framework needs none of it.
        from watchdog.adapters.wrapping import wrapped

        for hook in hooks:
            _apply(framework, hook, module, wrapped)

    return patch


def _apply(framework: str, hook: Hook, module: ModuleType, wrapped: Callable[..., Any]) -> None:
    owner_name, _, name = hook.attribute.rpartition(".")
    owner: Any = getattr(module, owner_name, None) if owner_name else module
    # A class from `@ray.remote` takes attributes and ignores them.
    owner = getattr(getattr(owner, "__ray_metadata__", None), "modified_class", owner)
    original = None if owner is None else vars(owner).get(name)
    if original is None:
        if not hook.is_optional:
            _say_missing(framework, hook)
        return
    if isinstance(original, (staticmethod, classmethod)):
        setattr(owner, name, type(original)(wrapped(framework, hook, original.__func__)))
    elif callable(original):
        setattr(owner, name, wrapped(framework, hook, original))
    if owner_name:
        _uncover_in_ray_classes(module, owner, name)


def _uncover_in_ray_classes(module: ModuleType, base: type, name: str) -> None:
    """Remove the copies that Ray made of a method before it was hooked.

    `ray.remote(Base)` keeps closures over the functions as they were, and ships those; without
    its own copy the class inherits the hooked one again.
    """
    for value in list(vars(module).values()):
        metadata = getattr(value, "__ray_metadata__", None) if not _is_plain(value) else None
        derived = getattr(metadata, "modified_class", None)
        is_ours = isinstance(derived, type) and derived is not base and issubclass(derived, base)
        if is_ours and name in vars(derived):
            delattr(derived, name)


def _is_plain(value: object) -> bool:
    return isinstance(value, (ModuleType, str, int, float, tuple, list, dict, type(None)))


def _say_missing(framework: str, hook: Hook) -> None:
    from watchdog.guest.notices import notice_once

    # The ranks of a node run the same version: one of them says it.
    if os.environ.get("LOCAL_RANK", "0") != "0":
        return
    place = f"{hook.module}:{hook.attribute}"
    notice_once(
        place,
        f"this version of {framework or 'a library'} has no {place}: syncs through it are not "
        "timed, unless its code marks them with watchdog.section.weight_sync()",
    )
