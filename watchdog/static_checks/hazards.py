"""The hazards of a launch, each with what can happen, what decides, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from watchdog.headings import texts_under
from watchdog.static_checks import CHECKS, Check
from watchdog.static_checks.launch import Confidence, Launch

HEADINGS = ("What can happen", "What decides", "What to do", "Source")
ORDER: tuple[Confidence, ...] = ("certain", "likely", "suspect")


@dataclass(frozen=True)
class Hazard:
    """One hazard of a launch.

    Attributes:
        check: Name of the check, with dashes.
        confidence: See `Confidence`.
        title: What is dangerous, one sentence.
        facts: What it was seen by.
        consequence: What can happen.
        decides: What would settle whether it does.
        remedy: What to do.
        source: The public report.
        rule: Name of the rule that recognises the hang, with dashes; "" where none does.
    """

    check: str
    confidence: Confidence
    title: str
    facts: tuple[str, ...]
    consequence: str
    decides: str
    remedy: str
    source: str
    rule: str = ""


def hazards_of(launch: Launch) -> tuple[Hazard, ...]:
    """All hazards, the most certain first."""
    found = []
    for check in CHECKS:
        seen = check.hazard(launch)
        if seen is None:
            continue
        title, consequence, decides, remedy, source = documentation(check)
        if seen.unless:
            decides = f"{decides} Here: {seen.unless}."
        found.append(
            Hazard(check_name(check), seen.confidence, title, seen.facts, consequence, decides,
                   remedy, source, check.RULE)
        )  # fmt: skip
    return tuple(sorted(found, key=lambda hazard: ORDER.index(hazard.confidence)))


def check_name(check: Check) -> str:
    """The name that users see: `lora-without-backuper`."""
    return check.__name__.rsplit(".", 1)[-1].replace("_", "-")


def documentation(check: Check) -> tuple[str, str, str, str, str]:
    """Title and the texts under the four headings of a check's docstring.

    Raises:
        ValueError: A heading is missing, out of order or empty; the message names it.
    """
    title, consequence, decides, remedy, source = texts_under(
        check.__doc__, HEADINGS, check_name(check)
    )
    return title, consequence, decides, remedy, source
