"""CUDA graphs replay buffers that were registered with NCCL before memory was paused.

What hangs
    All workers of a multi-node engine, in the first device synchronisation after the first graph
    replay that follows a resume.

How it shows
    The engine was woken (`resume_memory_occupation`), its workers stand in a device
    synchronisation at high utilisation and idle power, memory saver and CUDA graphs are on,
    `NCCL_GRAPH_REGISTER` is not 0.

What to do
    Set `NCCL_GRAPH_REGISTER=0` in the engines.

Not to be confused with
    engine_step_during_sleep, where the engine was not idle when it went to sleep.

Source
    https://github.com/sgl-project/sglang/pull/38936
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import engines
from watchdog.signs.answers import finding, quoted, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "nccl_transport"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    if situation.switches.environment("NCCL_GRAPH_REGISTER") == "0":
        return None
    for history in situation.engine_histories:
        last = history.last("sleep", "wake")
        workers = [
            p
            for p in engines.members(situation, "device_sync", "engine_step")
            if p.engine == history.index
        ]
        replay = situation.at(
            r"replay|cuda_graph|graph_runner|forward_batch_generation|process_batch_result",
            among=tuple(workers),
        )
        if (
            last is not None
            and last.op == "wake"
            and len(replay) > 1
            and len(replay) == len(workers)
        ):
            return finding(
                __name__,
                CAUSE_CLASS,
                "likely" if situation.log(r"enable_memory_saver=True|memory_saver") else "possible",
                "All workers of a resumed engine wait for the first graph replay.",
                [quoted(last.event), *(seen(situation, p) for p in replay[:2])],
                culprits=replay,
            )
    return None
