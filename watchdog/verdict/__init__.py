"""Who holds whom up: the judges in the order in which a person would look."""

from __future__ import annotations

from watchdog.verdict.verdict import verdict_of

__all__ = ["verdict_of"]
