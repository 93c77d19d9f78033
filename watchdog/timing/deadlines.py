"""How long a section may take: as set, or learned from the ones that ended."""

from __future__ import annotations

import math

from watchdog.settings import Settings

FIRST_S = 300.0
NUM_FIRST = 3
TIMES_LONGEST = 4
LEAST_S = 60.0
# A time-out of the process group destroys the evidence; the report must be written before it.
SHARE_OF_TIMEOUT = 0.4

COLLECTIVE = "collective"
# Ranks start at different times: their meeting takes what imports and disks take.
RENDEZVOUS_OPS = frozenset({"init_process_group"})
LEAST_RENDEZVOUS_S = 30.0


class Deadlines:
    """Deadline of each kind of section.

    The monitor teaches it, any thread asks it: each value is replaced by one store.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._counts: dict[str, int] = {}
        self._longest_s: dict[str, float] = {}

    def learn(self, name: str, took_s: float) -> None:
        """Take note of a section that ended on its own, and of how long it took (s)."""
        self._counts[name] = self._counts.get(name, 0) + 1
        self._longest_s[name] = max(self._longest_s.get(name, 0.0), took_s)

    def of_section(self, name: str, group_timeout_s: float | None) -> tuple[float, str]:
        """Deadline of a section (s), and where it comes from.

        Args:
            name: Name of the section.
            group_timeout_s: Shortest time-out of the process groups it uses (s).
        """
        if self._settings.stall_after_s is not None:
            return self._settings.stall_after_s, "set"
        if self._counts.get(name, 0) < NUM_FIRST:
            return _capped(FIRST_S, "auto: the first three syncs", group_timeout_s)
        longest_s = self._longest_s[name]
        reason = f"auto: four times the longest sync ({longest_s:.1f} s)"
        if TIMES_LONGEST * longest_s < LEAST_S:
            reason = f"auto: at least {LEAST_S:.0f} s"
        return _capped(max(LEAST_S, TIMES_LONGEST * longest_s), reason, group_timeout_s)

    def of_collective(self, op: str, group_timeout_s: float | None) -> tuple[float, str]:
        """Deadline of a blocking collective outside of any section (s), and its reason.

        A rank may rightly wait long for another one there (which evaluates, saves, generates),
        so what is learned from short waits does not lower the limit.
        """
        least_s = LEAST_RENDEZVOUS_S if op in RENDEZVOUS_OPS else 0.0
        for given_s in (self._settings.collective_after_s, self._settings.stall_after_s):
            if given_s is not None:
                return max(given_s, least_s), "set"
        longest_s = self._longest_s.get(COLLECTIVE, 0.0)
        deadline_s = max(FIRST_S, TIMES_LONGEST * longest_s)
        return _capped(deadline_s, "auto: a collective on its own", group_timeout_s)

    def warning(self, group_timeout_s: float | None) -> str:
        """What is wrong with a deadline that was set, "" if nothing."""
        given_s = self._settings.stall_after_s
        if given_s is None or group_timeout_s is None:
            return ""
        limit_s = SHARE_OF_TIMEOUT * group_timeout_s
        if given_s <= limit_s or math.isinf(given_s):
            return ""
        return (
            f"MILES_WATCHDOG_STALL_AFTER={given_s:g} s is more than 40 % of the process group's "
            f"time-out ({group_timeout_s:g} s): the group may fail before the report is written; "
            f"{limit_s:g} s or less is safe"
        )


def _capped(deadline_s: float, reason: str, group_timeout_s: float | None) -> tuple[float, str]:
    if group_timeout_s is None or deadline_s <= SHARE_OF_TIMEOUT * group_timeout_s:
        return deadline_s, reason
    capped_s = SHARE_OF_TIMEOUT * group_timeout_s
    return capped_s, f"auto: 40 % of the process group's time-out ({group_timeout_s:g} s)"
