"""The two ends of the update group run with different NCCL settings.

What hangs
    All members, in the first message of the group: everybody is where he should be.

How it shows
    A variable such as NCCL_CUMEM_ENABLE, NCCL_P2P_DISABLE, NCCL_SHM_DISABLE or NCCL_NET differs
    between trainers and engines; or NCCL's channel lines of the one end say `via SHM` and those of
    the other `via P2P` for one pair of ranks.

What to do
    Set the same values on both ends; start the engines with the trainer's environment.

Not to be confused with
    nccl_versions_differ; variables that only tune.

Source
    https://github.com/huggingface/trl/issues/3157
    https://github.com/huggingface/trl/issues/5865
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import peers, settings
from watchdog.signs.answers import finding
from watchdog.situation import Situation

CAUSE_CLASS: Final = "nccl_transport"


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    differing = [*settings.differing_variables(situation), *settings.differing_paths(situation)]
    if not differing:
        return None
    transfer = situation.at(
        r"broadcast|receive_weights|update_weights_from_distributed|update_named_param|nccl",
        among=situation.evidence.processes,
    )
    return finding(
        __name__,
        CAUSE_CLASS,
        "likely" if transfer and peers.hung(situation) else "possible",
        "The ends of the update group have different NCCL settings.",
        differing,
        culprits=(),
    )
