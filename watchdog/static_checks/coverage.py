"""Which of a launch's flags the checks know: silence on the others says nothing."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from watchdog.static_checks.launch import Launch

_SIMILAR = 0.85
_SHORTEST = 6


@dataclass(frozen=True)
class Coverage:
    """What the checks made of the flags.

    Attributes:
        known: Flags that a check has asked for, as they were given.
        unknown: The others.
        misspelt: Unknown flag to the known name that it is near to and that was not given.
    """

    known: tuple[str, ...]
    unknown: tuple[str, ...]
    misspelt: dict[str, str]


def coverage_of(launch: Launch) -> Coverage:
    """Compare the flags with what was asked for; call it after the checks have run."""
    asked = launch.switches.asked
    given = {flag.name: flag.name.replace("-", "_").lower() for flag in launch.evidence.flags}
    known = [name for name, plain in given.items() if _is_asked(plain, asked)]
    unknown = [name for name in given if name not in known]
    absent = sorted(asked - {given[name] for name in known})
    misspelt = {}
    for name in unknown:
        plain = given[name]
        near = difflib.get_close_matches(plain, absent, n=1, cutoff=_SIMILAR)
        if near and len(plain) >= _SHORTEST and _is_slip(plain, near[0]):
            misspelt[name] = near[0]
    return Coverage(tuple(known), tuple(unknown), misspelt)


def _is_asked(plain: str, asked: set[str]) -> bool:
    return plain in asked or any(plain.endswith("." + name) for name in asked)


def _is_slip(given: str, meant: str) -> bool:
    """Whether they differ by letters, not by a number, a word or a prefix that means something."""
    is_longer = given.startswith(meant) or meant.startswith(given)
    return given.count("_") == meant.count("_") and not is_longer and not _digits(given, meant)


def _digits(given: str, meant: str) -> bool:
    return any(character.isdigit() for character in given) != any(
        character.isdigit() for character in meant
    )
