"""Time in which the process could not run: stopped, frozen, or asleep with its machine.

Standard library only: the sentinel counts it as well.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

_LEAST_GAP_S = 1.0
_IDLE_SHARE = 0.05
_MAX_PAUSES = 64


class LostTime:
    """Tells by the looks of one thread when all of the process stood still.

    A thread that comes late while others of its process ran was kept from the GIL: nothing was
    lost then, training could go on.

    Args:
        cpu_s: Processor time of this process so far (s).
    """

    def __init__(self, cpu_s: Callable[[], float] = time.process_time) -> None:
        self._cpu_s = cpu_s
        self._last_cpu_s = cpu_s()
        # When each pause began and ended (monotonic, s).
        self._pauses: deque[tuple[float, float]] = deque(maxlen=_MAX_PAUSES)

    def woke(self, now_s: float, slept_s: float, wanted_s: float) -> None:
        """Say that a look begins.

        Args:
            now_s: Monotonic time (s).
            slept_s: Time since the last look (s).
            wanted_s: How long that was to be (s).
        """
        cpu_s = self._cpu_s()
        used_s, self._last_cpu_s = cpu_s - self._last_cpu_s, cpu_s
        if slept_s > max(_LEAST_GAP_S, 4 * wanted_s) and used_s < _IDLE_SHARE * slept_s:
            self._pauses.append((now_s - slept_s + wanted_s, now_s))

    def within_s(self, began_s: float, ended_s: float) -> float:
        """How much of a span of time was lost (s); the times are monotonic (s)."""
        return sum(
            max(0.0, min(ended_s, to_s) - max(began_s, from_s)) for from_s, to_s in self._pauses
        )
