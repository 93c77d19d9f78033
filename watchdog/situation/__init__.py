"""The views on the evidence that the verdict and the rules share."""

from __future__ import annotations

from watchdog.situation.situation import Situation

__all__ = ["Situation"]
