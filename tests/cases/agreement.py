"""Does a diagnosis agree with what is expected of a case? The keys are in README.md."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchdog.diagnosis import diagnose
from watchdog.findings import Culprit, Diagnosis
from watchdog.intake import evidence_from_paths

HERE = Path(__file__).parent
CASES = sorted(path.parent.name for path in HERE.glob("*/expected.json"))
STRONG = ("likely", "confirmed")
ORDER = ("possible", "likely", "confirmed")


@dataclass(frozen=True)
class Agreement:
    """How a diagnosis compares.

    Attributes:
        faults: What disagrees, one phrase each; empty where all is right.
        is_wrong_claim: Whether a wrong cause is claimed strongly.
        is_class_right: Whether the first cause has a right class.
    """

    faults: tuple[str, ...]
    is_wrong_claim: bool
    is_class_right: bool


def expected(case: str) -> dict[str, Any]:
    """The right answer of a case."""
    answer: dict[str, Any] = json.loads((HERE / case / "expected.json").read_text())
    return answer


def diagnosis_of(folder: Path) -> Diagnosis:
    """Read the files as a user would hand them over, and judge."""
    return diagnose(evidence_from_paths([folder]))


def compare(wanted: dict[str, Any], found: Diagnosis) -> Agreement:
    """Compare state, first class, strength, forbidden classes, culprits and place."""
    faults = []
    right = [wanted["class"], *wanted.get("acceptable", [])]
    first = found.causes[0] if found.causes else None
    if found.verdict.state != wanted["state"]:
        faults.append(f"state {found.verdict.state}")
    is_strong = first is not None and first.confidence in STRONG
    is_right = (first.cause_class in right) if first is not None else wanted["class"] is None
    if wanted["class"] is None:
        is_right = is_right or not is_strong
    if not is_right:
        faults.append(f"class {first.cause_class if first else None}")
    limit = wanted.get("max_confidence")
    if limit and first and ORDER.index(first.confidence) > ORDER.index(limit):
        faults.append(f"confidence {first.confidence}")
    forbidden = [
        cause.cause_class
        for cause in found.causes
        if cause.cause_class in wanted.get("never", []) and cause.confidence in STRONG
    ]
    faults += [f"never {name}" for name in forbidden]
    faults += _culprit_faults(wanted, found.verdict.culprits)
    wrong = bool(forbidden) or (is_strong and not is_right)
    return Agreement(tuple(faults), wrong, is_right)


def _culprit_faults(wanted: dict[str, Any], named: tuple[Culprit, ...]) -> list[str]:
    accused = wanted.get("culprits") or []
    faults = [f"culprit {a} missing" for a in accused if not any(_is_same(a, n) for n in named)]
    if accused and len(named) > 2 * len(accused) + 1:
        faults.append(f"{len(named)} culprits")
    places = wanted.get("where") or []
    if accused and places and not any(p in n.where + n.why for p in places for n in named):
        faults.append("where")
    return faults


def _is_same(wanted: dict[str, Any], named: Culprit) -> bool:
    known = {k: getattr(named, k) for k in wanted if getattr(named, k) is not None}
    return bool(known) and all(wanted[key] == value for key, value in known.items())
