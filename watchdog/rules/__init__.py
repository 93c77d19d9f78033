"""The known root causes: one module each, the tuple below is the one list, its order precedence."""

from __future__ import annotations

from typing import Protocol

from watchdog.findings import CauseClass, Finding, Refutation
from watchdog.rules import missing_backup_lora_colocate, paused_memory_read, slow_not_hung
from watchdog.situation import Situation


class Rule(Protocol):
    """What a module of this package offers; its docstring is its documentation."""

    __name__: str
    __doc__: str | None

    @property
    def CAUSE_CLASS(self) -> CauseClass:  # noqa: N802 - a constant of the module
        """Its class."""
        ...

    def diagnose(self, situation: Situation) -> Finding | Refutation | None:
        """What the rule says of the situation: it fits, it was ruled out, or nothing."""
        ...


RULES: tuple[Rule, ...] = (
    missing_backup_lora_colocate,
    paused_memory_read,
    slow_not_hung,
)
"""Order is precedence among findings of one confidence."""
