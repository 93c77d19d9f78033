"""Only rank 0 enters a gather that needs all ranks.

What hangs
    Rank 0, alone in the gather; the others have returned or are in the next phase.

How it shows
    Rank 0 in `full_tensor` or an all-gather below an export or save, the others past it: idle, in
    a later barrier, or in a collective of the next step.

What to do
    All ranks must iterate over all tensors; let only the writing depend on the rank.

Not to be confused with
    missing_rank the other way round, where one rank is absent.

Source
    https://github.com/ISEEKYAN/Megatron-LM/pull/82
"""

from __future__ import annotations

from typing import Final

from watchdog.evidence import Process
from watchdog.findings import Finding, Refutation
from watchdog.signs import peers
from watchdog.signs.answers import finding, seen
from watchdog.situation import Situation

CAUSE_CLASS: Final = "rank_subset_collective"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    alone = [
        p for p in situation.at(r"full_tensor|all_gather") if situation.wait(p).kind == "collective"
    ]
    if len(alone) != 1 or len(situation.trainers) < 2 or not peers.hung(situation):
        return None
    gather = alone[0]
    others = [p for p in situation.trainers if p is not gather]
    exporting = situation.at(r"export|save|state_dict|rank0_only|hf_state", among=(gather,))
    past = [
        p
        for p in others
        if situation.wait(p).kind in ("idle", "unknown", "queue", "sleep", "cleanup")
        or (situation.wait(p).operation == "barrier" and situation.wait(p).kind == "collective")
        or _is_elsewhere(situation, p, gather)
    ]
    if exporting and len(past) == len(others):
        return finding(
            __name__,
            CAUSE_CLASS,
            "likely",
            f"{gather.key} alone is in a gather of all ranks.",
            [seen(situation, gather), *(seen(situation, p) for p in past[:2])],
            culprits=[gather],
        )
    return None


def _is_elsewhere(situation: Situation, process: Process, gather: Process) -> bool:
    """Whether it waits for its peers in another operation, outside of the function that exports."""
    wait, alone = situation.wait(process), situation.wait(gather)
    shared = {f.function for f in wait.path} & {f.function for f in alone.path[:2]}
    return wait.kind == "collective" and wait.operation != alone.operation and not shared
