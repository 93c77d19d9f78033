"""Ray: the driver knows the arguments, and the name of its job once it is connected.

Source:
    `ray/_private/worker.py`: `init`, which `ray/__init__.py` takes its name from.
"""

from __future__ import annotations

from typing import Any

from watchdog.adapters.hook import observed

FRAMEWORK = ""


def _connected(args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
    from watchdog.recording import active_flags

    active_flags.publish()


HOOKS = (observed("ray._private.worker", "init", _connected),)
