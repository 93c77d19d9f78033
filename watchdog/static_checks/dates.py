"""Whether a framework is from before or after a fix, as far as that can be known here."""

from __future__ import annotations

from watchdog.signs.settings import version_tuple
from watchdog.static_checks.launch import Launch


def is_from(framework: str, day: str, launch: Launch) -> bool | None:
    """Whether its checkout is from that day (`2026-09-08`) or later; `None` where unknown."""
    known = launch.host.checkout_dates.get(framework) if launch.host else None
    return None if known is None else known >= day


def is_version_from(package: str, version: str, launch: Launch) -> bool | None:
    """Whether its installed version is this one or a later; `None` where unknown."""
    known = launch.switches.version(package)
    return None if known is None else version_tuple(known) >= version_tuple(version)


def shown(framework: str, launch: Launch) -> str:
    """The date for a list of facts."""
    day = launch.host.checkout_dates.get(framework, "?") if launch.host else "?"
    return f"{framework} is of {day}"
