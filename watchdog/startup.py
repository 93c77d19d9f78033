"""What the `.pth` start-up hook calls in every process that has `MILES_WATCHDOG` set.

It registers callbacks for modules that may be imported later, and does nothing else: most
processes with the variable set (pip, shells' helpers, data loaders) never import one of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import ModuleType

_VARIABLE = "MILES_WATCHDOG"
_is_started = False


def start() -> None:
    """Arm the import hooks of this process, once. Never raises."""
    global _is_started
    if _is_started:
        return
    _is_started = True
    try:
        _register()
    except Exception as error:
        _say(error)


def environ_without_watchdog(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that the watchdog itself starts: it is not watched."""
    return {name: value for name, value in environ.items() if name != _VARIABLE}


def _register() -> None:
    from watchdog.adapters.patching import register_all
    from watchdog.guest.import_hooks import when_imported

    when_imported("faulthandler", _on_faulthandler)
    when_imported("torch.distributed.distributed_c10d", _on_torch_distributed)
    register_all()


def _on_faulthandler(module: ModuleType) -> None:
    from watchdog.guest import host_timer

    host_timer.watch(module)


def _on_torch_distributed(module: ModuleType) -> None:
    from watchdog.adapters import torch_distributed
    from watchdog.process_identity import is_child_of_a_rank
    from watchdog.process_watch import ensure_started

    torch_distributed.patch(module)
    # A launcher made this process a rank: it may hang before it meets the others.
    if "RANK" in os.environ and not is_child_of_a_rank(os.environ):
        ensure_started()


def _say(error: Exception) -> None:
    sys.stderr.write(f"[miles-watchdog] could not start, the program goes on: {error!r}\n")
