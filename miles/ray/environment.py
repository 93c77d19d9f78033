"""What of the driver's environment its actors are given.

An actor gets the environment of the Ray node it runs on, not the driver's: on a cluster that
was started before, a variable set for this run reaches it only by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from miles.utils.host_address import VARIABLE

_PREFIX = "MILES_WATCHDOG"
# Under which the watchdog files its reports; a relative path means the driver's folder.
_FOLDER = "MILES_WATCHDOG_DIR"


def actor_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of the driver that every actor of the run is given.

    Args:
        environ: The driver's, usually `os.environ`.
    """
    passed = {name: value for name, value in environ.items() if name.startswith(_PREFIX)}
    if passed.get(_FOLDER):
        passed[_FOLDER] = os.path.abspath(os.path.expanduser(passed[_FOLDER]))
    return {"OMP_NUM_THREADS": environ.get("OMP_NUM_THREADS", "1")} | passed


def runtime_env(host_address: str | None = None) -> dict[str, Any]:
    """Ray's `runtime_env` of an actor: its variables exist before its interpreter starts.

    Args:
        host_address: Address of the node that the actor is placed on, if it matters.
    """
    variables = actor_environment(os.environ)
    if host_address is not None:
        variables[VARIABLE] = host_address
    return {"env_vars": variables}
