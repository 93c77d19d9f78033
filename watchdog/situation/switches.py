"""Flags, environment variables and versions, whatever their spelling."""

from __future__ import annotations

import re
from functools import cached_property

from watchdog.evidence import Evidence, Flag, Process

Scalar = str | int | float | bool | None
_FALSE = frozenset({"", "0", "false", "no", "off", "none", "null"})


class Switches:
    """What the run was started with.

    Attributes:
        asked: Names of the flags that somebody has asked for so far, with underscores.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.asked: set[str] = set()

    @cached_property
    def _by_name(self) -> dict[str, Flag]:
        return {flag.name.replace("-", "_").lower(): flag for flag in self._evidence.flags}

    def flag(self, name: str) -> Flag | None:
        """The flag by its full name, or by its last part in a hierarchical configuration."""
        wanted = name.replace("-", "_").lower()
        self.asked.add(wanted)
        if wanted in self._by_name:
            return self._by_name[wanted]
        suffix = "." + wanted
        return next((flag for key, flag in self._by_name.items() if key.endswith(suffix)), None)

    def value(self, name: str) -> Scalar:
        """Its value, `None` where it was not given."""
        flag = self.flag(name)
        return flag.value if flag is not None else None

    def on(self, *names: str) -> bool:
        """Whether any of the flags is set to something that is not off."""
        return any(is_on(self.value(name)) for name in names)

    def off(self, name: str) -> bool:
        """Whether the flag was given and switches something off."""
        flag = self.flag(name)
        return flag is not None and not is_on(flag.value)

    def number(self, name: str) -> float | None:
        """Its value as a number, `None` where it is none."""
        value = self.value(name)
        try:
            return float(value) if value is not None and not isinstance(value, bool) else None
        except ValueError:
            return None

    def environment(self, name: str) -> str | None:
        """A variable of the job, or of the first process that has it."""
        if name in self._evidence.environment:
            return self._evidence.environment[name]
        for process in self._evidence.processes:
            if name in process.environment:
                return process.environment[name]
        return None

    def environment_of(self, process: Process, name: str) -> str | None:
        """A variable of this process, else of the job."""
        return process.environment.get(name, self._evidence.environment.get(name))

    def version(self, package: str) -> str | None:
        """Version of a package in the job or in any process."""
        wanted = package.replace("_", "-").lower()
        for versions in (self._evidence.versions, *(p.versions for p in self._evidence.processes)):
            for name, version in versions.items():
                if name.replace("_", "-").lower() == wanted:
                    return version
        return None

    def versions_like(self, expression: str) -> dict[str, set[str]]:
        """Package to all its versions anywhere in the job, for names that match."""
        wanted, found = re.compile(expression), dict[str, set[str]]()
        for versions in (self._evidence.versions, *(p.versions for p in self._evidence.processes)):
            for name, version in versions.items():
                if wanted.search(name):
                    found.setdefault(name, set()).add(version)
        return found


def is_on(value: Scalar) -> bool:
    """Whether a flag's value switches something on."""
    if isinstance(value, str):
        return value.strip().lower() not in _FALSE
    return bool(value)
