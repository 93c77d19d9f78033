"""A rank frees device memory while a collective is in flight on that device.

What hangs
    All ranks. `cudaFree` waits until the device is idle; the device is busy with a collective
    whose peers wait for the next one of this rank, which comes only after the free.

How it shows
    One rank is in `torch.cuda.empty_cache()`, or its native frames in `cudaFree` / `cuMemFree`;
    the others are in a collective. Several communicators, or one on a side stream, are the usual
    company.

What to do
    Wait for outstanding collectives before memory is given back, or do not call `empty_cache()`
    between them; run the communicators of one device on one stream.

Not to be confused with
    A free that only takes long: a second look finds it elsewhere.

Source
    https://github.com/NVIDIA/nccl/issues/48
"""

from __future__ import annotations

import re
from typing import Final

from watchdog.evidence import Process, StackSample
from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "lock_deadlock"

_FREES = re.compile(r"empty_?cache|cudaFree\w*|cuMemFree\w*|THCPModule_emptyCache", re.IGNORECASE)


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    freeing = [p for p in peers.accused(situation) if p.stacks and _frees(p.stacks[-1])]
    waiting = situation.doing("collective")
    if not freeing or not waiting or not peers.hung(situation):
        return None
    # Two looks, also of two tools: a free that is merely slow is over by the second.
    stays = all(_stays(p) for p in freeing) or situation.evidence.stall is not None
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if stays else "possible",
        f"{freeing[0].key} frees device memory and waits for the device, which is in a collective.",
        [*(seen(situation, p) for p in freeing[:3]), *(seen(situation, p) for p in waiting[:2])],
        culprits=freeing,
    )


def _frees(sample: StackSample) -> bool:
    main = next((t for t in sample.threads if t.frames), None)
    return main is not None and any(_FREES.search(f.function) for f in main.frames[:16])


def _stays(process: Process) -> bool:
    return len(process.stacks) >= 2 and all(_frees(sample) for sample in process.stacks[-2:])
