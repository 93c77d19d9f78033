"""The engines' side: the end of the chain where trainers wait for an answer."""

from __future__ import annotations

from watchdog.situation import Situation
from watchdog.verdict.judgement import Judgement


def stuck_engine(situation: Situation) -> Judgement | None:
    """An engine or one of its workers that shows by itself that it is stuck."""
    return None
