"""The pool of CUDA graphs was paused without a copy, and the graphs read it after the resume.

What hangs
    The engine, in its first decode after a resume.

How it shows
    `SGLANG_MEMORY_SAVER_CUDA_GRAPH=1` or the tag `cuda_graph` is released, and `misaligned
    address` or `illegal memory access` follows the resume.

What to do
    Back the graph pool up on the host (upgrade SGLang), or leave the tag `cuda_graph` resident.

Not to be confused with
    graph_registered_before_resume, which hangs instead of failing.

Source
    https://github.com/sgl-project/sglang/pull/32718
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import engines
from watchdog.signs.answers import finding, quoted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "missing_backup"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    paused = situation.switches.environment(
        "SGLANG_MEMORY_SAVER_CUDA_GRAPH"
    ) == "1" or situation.log(r"tags=.*cuda_graph")
    if not paused:
        return None
    for history in situation.engine_histories:
        faults = engines.during(history, "wake", r"misaligned address|illegal memory access")
        if faults:
            return finding(
                __name__,
                CAUSE_CLASS,
                "likely",
                "A graph replay failed after the pool was paused and resumed.",
                [quoted(faults[0])],
            )
    return None
