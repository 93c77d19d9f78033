"""Progress bars: when each of their states was written, which no logger's time tells."""

from __future__ import annotations

from dataclasses import replace

from watchdog.intake.times import Moment

BEGINNING_S = 120.0
"""A bar that is first seen with more on its clock than this began before the last known time."""

MAX_BARS = 1_000
NUM_STATES = 4


def last_states(line: str) -> list[str]:
    """The first and the last few states of a bar that rewrote its line, but for the very last."""
    if "\r" not in line or "%|" not in line:
        return []
    first = [state for state in line.split("\r", 2)[:2] if "%|" in state]
    last = [state for state in line.rsplit("\r", NUM_STATES + 2)[1:] if "%|" in state]
    return list(dict.fromkeys((*first[:1], *last[-NUM_STATES:-1])))


class BarClocks:
    """Dates states of bars: each counts from the last time that a log told before it began."""

    def __init__(self) -> None:
        self._bars: dict[str, tuple[Moment, float]] = {}

    def moment(self, name: str, elapsed: str, now: Moment | None) -> Moment | None:
        """When a state was written.

        Args:
            name: What the bar counts.
            elapsed: Its own clock, `[h:]mm:ss`.
            now: The last time that the log told, `None` before the first.

        Returns:
            Never earlier than `now`; `None` where that is unknown.
        """
        seconds = _seconds(elapsed)
        if now is None or seconds is None:
            return now
        start, before = self._bars.get(name, (now, seconds + 1.0))
        if seconds < before:
            young = seconds <= BEGINNING_S
            start = now if young else replace(now, seconds=now.seconds - seconds)
        if name in self._bars or len(self._bars) < MAX_BARS:
            self._bars[name] = (start, seconds)
        written = replace(start, seconds=start.seconds + seconds)
        return written if _same_day(written, now) and written.seconds > now.seconds else now


def _same_day(one: Moment, other: Moment) -> bool:
    return (one.year, one.month, one.day, one.absolute) == (
        other.year,
        other.month,
        other.day,
        other.absolute,
    )


def _seconds(clock: str) -> float | None:
    parts = clock.split(":")
    if not 2 <= len(parts) <= 3 or not all(part.isdigit() for part in parts):
        return None
    return float(sum(int(p) * s for p, s in zip(reversed(parts), (1, 60, 3600), strict=False)))
