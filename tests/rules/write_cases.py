"""Writes the rules' case files: what fires each rule, and the neighbour that must not.

Run it after a change of the evidence schema: `python -m tests.rules.write_cases`. A case that
comes from a real incident is copied into a rule's folder and is not listed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.rules import (
    cases_of_crashes,
    cases_of_endings,
    cases_of_engines,
    cases_of_groups,
    cases_of_hosts,
    cases_of_launches,
    cases_of_locks,
    cases_of_long_waits,
    cases_of_memory,
    cases_of_transport,
)
from watchdog.evidence import Evidence
from watchdog.serialization import evidence_to_json

_HERE = Path(__file__).parent
_MODULES = (
    cases_of_memory,
    cases_of_transport,
    cases_of_engines,
    cases_of_groups,
    cases_of_crashes,
    cases_of_endings,
    cases_of_hosts,
    cases_of_long_waits,
    cases_of_launches,
    cases_of_locks,
)


def cases() -> Iterator[tuple[str, str, Evidence]]:
    """Rule, name of the case, evidence, for every function `<rule>__fires_…` or `…__silent_…`."""
    for module in _MODULES:
        for name, build in vars(module).items():
            found = re.fullmatch(r"(\w+?)__((?:fires|silent)_\w+)", name)
            if found and isinstance(build, Callable):  # type: ignore[arg-type]
                yield found[1], found[2], build()


def main() -> None:
    """Write all files."""
    for rule, name, evidence in cases():
        folder = _HERE / rule
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.json").write_text(evidence_to_json(evidence) + "\n")


if __name__ == "__main__":
    main()
