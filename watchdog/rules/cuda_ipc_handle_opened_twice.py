"""A shared device buffer is closed in a destructor that waits for a stream that never drains.

What hangs
    One engine worker, in the release of a tensor it received by CUDA IPC; the other workers of
    the engine in the barrier behind the update; the trainer in its call.

How it shows
    The odd worker's Python stack ends at an ordinary line of the update; only native frames tell:
    the deleter of `THPStorage_newSharedCuda` in `cudaStreamSynchronize`. Typical with a
    speculative (draft) worker that opens the same handles a second time.

What to do
    Open each IPC handle once and share it between target and draft worker; drop the references
    before the barrier. Upgrade SGLang; meanwhile switch speculative decoding off for training.

Not to be confused with
    gil_held, where the thread that keeps the GIL waits in a driver call of its own.

Source
    https://github.com/sgl-project/sglang/pull/17870
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import engines
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "lock_deadlock"
FLAGS = ("speculative_algorithm", "sglang_speculative_algorithm", "enable_rollout")


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    every = (*situation.trainers, *situation.engines)
    destructor = tuple(p for p in every if _in_destructor(p))
    if destructor:
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed",
            "The release of a tensor received by CUDA IPC waits for its stream.",
            [seen(situation, p) for p in destructor],
            culprits=destructor,
        )
    odd, together = engines.odd_workers(situation)
    if odd and together and situation.at(r"eagle|speculative|draft", among=odd):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            "One engine worker is in the update of its draft model while its peers are done.",
            [seen(situation, p) for p in odd],
            culprits=odd,
        )
    return None


def _in_destructor(process: Process) -> bool:
    """Whether a thread is in the deleter of a shared storage, waiting for the device."""
    for sample in process.stacks[-3:]:
        for thread in sample.threads:
            names = [frame.function for frame in thread.frames]
            deleter = any("newSharedCuda" in n or "CudaIPC" in n for n in names)
            waits = any(re.search(r"cu(da)?(Stream|Event|Ctx|Device)Synchronize", n) for n in names)
            if deleter and waits:
                return True
    return False
