"""Two incidents side by side: only what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from watchdog.evidence import Evidence
from watchdog.findings import Diagnosis
from watchdog.reports import wording
from watchdog.reports.printable import one_line

Told = tuple[Evidence, Diagnosis]


def render(first: Told, second: Told) -> str:
    """One line a difference, `name: first → second`; says so where there is none."""
    lines = [
        f"{name}: {one_line(before or '(none)')} → {one_line(after or '(none)')}"
        for name, before, after in _differences(first, second)
    ]
    return "\n".join(lines or ["nothing that a report shows differs"]) + "\n"


def _differences(first: Told, second: Told) -> Iterator[tuple[str, str, str]]:
    before, after = _facts(first), _facts(second)
    for name in dict.fromkeys([*before, *after]):
        if before.get(name, "") != after.get(name, ""):
            yield name, before.get(name, ""), after.get(name, "")


def _facts(told: Told) -> dict[str, str]:
    evidence, diagnosis = told
    verdict = diagnosis.verdict
    culprits = wording.merged_culprits(verdict.culprits)
    facts = {
        "state": verdict.state,
        "culprits": wording.culprits_label(verdict.culprits),
        "where": "; ".join(culprit.where for _, culprit in culprits),
        "causes": "; ".join(wording.cause_label(cause) for cause in diagnosis.causes),
        "framework": evidence.framework,
        "world size": str(evidence.world_size or ""),
    }
    for group in wording.waiting_groups(diagnosis):
        facts[f"waiting {wording.group_label(group)}"] = wording.group_words(group)
    facts.update({f"flag {flag.name}": repr(flag.value) for flag in evidence.flags})
    facts.update(_prefixed("environment", evidence.environment))
    facts.update(_prefixed("version", evidence.versions))
    return facts


def _prefixed(prefix: str, mapping: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix} {name}": value for name, value in mapping.items()}
