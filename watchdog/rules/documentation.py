"""A rule's docstring, taken apart at its fixed headings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from watchdog.headings import texts_under

if TYPE_CHECKING:
    from watchdog.rules import Rule

HEADINGS = ("What hangs", "How it shows", "What to do", "Not to be confused with", "Source")


@dataclass(frozen=True)
class Documentation:
    """The parts of a rule's docstring.

    Attributes:
        title: First line: the cause in one sentence.
        what_hangs: Who waits where.
        how_it_shows: The evidence.
        what_to_do: The remedy.
        not_to_be_confused_with: The look-alikes.
        source: The public report.
    """

    title: str
    what_hangs: str
    how_it_shows: str
    what_to_do: str
    not_to_be_confused_with: str
    source: str


def rule_name(rule: Rule) -> str:
    """The name that users see: `missing-backup-lora-colocate`."""
    return rule.__name__.rsplit(".", 1)[-1].replace("_", "-")


def documentation(rule: Rule) -> Documentation:
    """Take the docstring apart.

    Raises:
        ValueError: A heading is missing, out of order or empty; the message names rule and heading.
    """
    return Documentation(*texts_under(rule.__doc__, HEADINGS, rule_name(rule)))
