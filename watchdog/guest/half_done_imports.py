"""What a fork does to imports that a thread of the watchdog is in the middle of.

The child has the locks of the modules that were being imported, but not the thread that would
give them back: an import of the same module there would wait for ever. CPython sets its one
import lock anew in a child, not those of single modules.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from typing import Any

_own_threads: set[int] = set()


def is_own_thread() -> None:
    """Remember that the calling thread is one of the watchdog's."""
    _own_threads.add(threading.get_ident())


def forget_in_child() -> None:
    """In the child of a fork: let modules that were half imported by us be imported anew.

    Only ours: with the threads of the host it is as without the watchdog. Never raises.
    """
    with contextlib.suppress(Exception):
        # Private, and the same since Python 3.3: there is no other way to tell.
        bootstrap: Any = importlib._bootstrap
        ours = _own_threads - {threading.get_ident()}
        for name, reference in list(bootstrap._module_locks.items()):
            lock = reference()
            if lock is not None and lock.owner in ours:
                bootstrap._module_locks.pop(name, None)
                _forget(name)
    _own_threads.clear()


def _forget(name: str) -> None:
    module = sys.modules.get(name)
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        sys.modules.pop(name, None)
