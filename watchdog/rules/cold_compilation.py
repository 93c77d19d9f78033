"""A fresh node compiles kernels in the first step, and the others wait.

What hangs
    The ranks that wait for the compiling ones, until their time-out.

How it shows
    Frames in Triton, Inductor, DeepGEMM or a C++ extension loader that differ between two looks;
    CPU time and the kernel cache grow; only new containers or new nodes are affected.

What to do
    Wait; warm the caches on local storage before the run; give the first step a longer time-out.

Not to be confused with
    jit_lock_left_behind, where nobody compiles.

Source
    https://github.com/radixark/miles/pull/3132
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs.answers import finding, quotes, seen
from watchdog.situation import Situation
from watchdog.verdict import (
    verdict_of,
)

CAUSE_CLASS: Final = "slow_not_hung"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if verdict_of(situation).state != "slow":
        return None
    compiling = [
        p
        for p in situation.doing("slow_work", among=situation.evidence.processes)
        if situation.moving(p) and situation.wait(p).operation == "compile"
    ]
    if not compiling:
        return None
    said = situation.log(r"[Cc]ompiling")
    return finding(
        __name__,
        CAUSE_CLASS,
        "confirmed",
        "Ranks compile kernels while the others wait.",
        [
            *(f"{seen(situation, p)}; {situation.movements[p.key].how}" for p in compiling[:3]),
            *quotes(said, 1),
        ],
        culprits=compiling,
    )
