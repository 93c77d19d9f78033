"""The configured time-out is lost when the process groups are rebuilt.

What hangs
    Nothing by itself: work that would have ended in time is killed at the default of ten minutes.

How it shows
    `--distributed-timeout-minutes` is not 10, the groups were reloaded after a sleep, and the
    watchdog line says `Timeout(ms)=600000`.

What to do
    Upgrade (miles from 2026-07-10, slime from 0.3.1), which keep the time-out. Then look at what
    is slow.

Not to be confused with
    The cause of the wait: this only decides how long it may last.

Source
    https://github.com/THUDM/slime/pull/2095
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quoted, quotes
from watchdog.situation import Situation

CAUSE_CLASS: Final = "config_invalid"
FLAGS = ("distributed_timeout_minutes", "offload_train")


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    minutes = situation.switches.number("distributed_timeout_minutes")
    if not minutes or minutes == 10:
        return None
    rebuilt = situation.log(r"Reloading \d+ process groups")
    killed = situation.log(r"Timeout\(ms\)=600000\b")
    if (
        killed
        and minutes > 10
        and (rebuilt or situation.switches.on("offload_train", "colocate", "offload"))
    ):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            f"The time-out is set to {minutes:g} minutes, and the groups use 10.",
            [quoted(killed[0]), *quotes(rebuilt, 1)],
        )
    return None
