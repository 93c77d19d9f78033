"""What came of a job, and whether that is what was to be shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from watchdog.counting import counted


@dataclass(frozen=True)
class Outcome:
    """What a job left behind.

    Attributes:
        exit_status: Of the launcher; negative for a signal, `None` where it had to be ended.
        output: All that it printed.
        reports: The report.json of each incident, newest first.
        num_syncs: Weight syncs that ended, over all ranks.
    """

    exit_status: int | None
    output: str
    reports: tuple[dict[str, Any], ...] = field(default=())
    num_syncs: int = 0


class Expectation(Protocol):
    """What must come of a scenario."""

    def missed(self, outcome: Outcome) -> str:
        """Why the outcome is another one; "" when it is as expected."""
        ...


@dataclass(frozen=True)
class Hangs:
    """The watchdog reports a hang with this cause and these culprits.

    Attributes:
        cause_class: Class of the first cause, `None` for any or none.
        confidence: How sure it must be, `None` for any.
        ranks: All culprits.
        rule: Name of the first cause's rule, "" for any.
    """

    cause_class: str | None
    confidence: str | None
    ranks: tuple[int, ...]
    rule: str = ""

    def missed(self, outcome: Outcome) -> str:
        """Compare the last incident; see `Expectation`."""
        if not outcome.reports:
            return f"no incident was reported (exit status {outcome.exit_status})"
        report = outcome.reports[0]
        if len(outcome.reports) > 1:
            return f"{len(outcome.reports)} incidents were reported, not one"
        cause = (report.get("causes") or [{}])[0]
        seen = {
            "state": report.get("state"),
            "cause": cause.get("class"),
            "confidence": cause.get("confidence"),
            "rule": cause.get("rule"),
            "culprits": tuple(culprit.get("rank") for culprit in report.get("culprits") or []),
        }
        wanted = {
            "state": "hung",
            "cause": self.cause_class,
            "confidence": self.confidence,
            "rule": self.rule or None,
            "culprits": self.ranks,
        }
        return "; ".join(
            f"{key} is {seen[key]!r}, not {wanted[key]!r}"
            for key in wanted
            if wanted[key] is not None and seen[key] != wanted[key]
        )


@dataclass(frozen=True)
class Fails:
    """The job itself fails at once, with these words, and nothing hangs.

    Attributes:
        words: What it must print.
    """

    words: str

    def missed(self, outcome: Outcome) -> str:
        """Compare exit status, words and incidents; see `Expectation`."""
        if outcome.exit_status in (0, None):
            ended = "trained to the end" if outcome.exit_status == 0 else "did not end"
            return f"it {ended} instead of failing"
        if self.words not in outcome.output:
            return f"it failed without the words {self.words!r}"
        return f"{counted(len(outcome.reports), 'incident')} reported" if outcome.reports else ""


@dataclass(frozen=True)
class Finishes:
    """The job trains to its end and the watchdog reports nothing."""

    def missed(self, outcome: Outcome) -> str:
        """Compare exit status, incidents and the record of syncs; see `Expectation`."""
        if outcome.exit_status != 0:
            return f"it ended with status {outcome.exit_status}"
        if outcome.reports:
            return f"{counted(len(outcome.reports), 'incident')} reported"
        return "" if outcome.num_syncs else "no sync was recorded: the watchdog was not on"
