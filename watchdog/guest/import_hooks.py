"""Callbacks for modules that are imported later.

A library does the same (`wrapt.register_post_import_hook`). Importing it adds 97 ms of CPU time
to the 31 ms that `MILES_WATCHDOG=1 python -c pass` takes more than without (medians of 15,
alternating, wrapt 2.5 on two busy cores), in every Python process of a run, and still 38 ms
beside the 2.3 s of `import torch`. This takes one. Its function wrappers are objects, of which
`torch.compile` and Ray's look at a method's kind see no plain function: `wrapping` has its own.

A hooked module ends up with the loader and the spec that it would have had without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_callbacks: dict[str, list[Callable[[ModuleType], None]]] = {}


def when_imported(name: str, callback: Callable[[ModuleType], None]) -> None:
    """Call back once the module has run, before its importer sees it; at once if it has already.

    Args:
        name: Full name of the module.
        callback: Gets the module. What it raises is shown on stderr and goes no further.
    """
    module = sys.modules.get(name)
    if module is not None:
        _call(callback, module)
        return
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    _callbacks.setdefault(name, []).append(callback)


class _Finder:
    """Finds hooked modules through all the other finders, and puts a loader around theirs."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _callbacks:
            return None
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec = find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader:
    """Runs a module by its own loader, puts that back in its place, then calls back."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for callback in _callbacks.get(module.__name__, ()):
            _call(callback, module)


def _call(callback: Callable[[ModuleType], None], module: ModuleType) -> None:
    try:
        callback(module)
    except Exception as error:
        sys.stderr.write(f"[miles-watchdog] {module.__name__} not hooked: {error!r}\n")
