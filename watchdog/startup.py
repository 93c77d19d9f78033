"""What the `.pth` start-up hook calls in every process that has `MILES_WATCHDOG` set.

It registers callbacks for modules that may be imported later, and does nothing else: most
processes with the variable set (pip, shells' helpers, data loaders) never import one of them.
"""

from __future__ import annotations

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
    import wrapt

    wrapt.register_post_import_hook(_on_faulthandler, "faulthandler")
    wrapt.register_post_import_hook(_on_torch_distributed, "torch.distributed.distributed_c10d")


def _on_faulthandler(module: ModuleType) -> None:
    try:
        from watchdog import host_timer

        host_timer.watch(module)
    except Exception as error:
        _say(error)


def _on_torch_distributed(module: ModuleType) -> None:
    try:
        from watchdog.adapters import torch_distributed

        torch_distributed.patch(module)
    except Exception as error:
        _say(error)


def _say(error: Exception) -> None:
    sys.stderr.write(f"[miles-watchdog] could not start, the program goes on: {error!r}\n")
