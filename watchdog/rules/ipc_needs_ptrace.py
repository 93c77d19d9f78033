"""Device buffers cannot be shared: the container lacks the ptrace capability.

What hangs
    The trainer, in the call whose receiver died; its peers in the gather behind it.

How it shows
    `pidfd_getfd: Operation not permitted` in the engine's traceback. The trainer allocates with
    `expandable_segments:True`, whose IPC handles need that system call; `CapEff` lacks
    `CAP_SYS_PTRACE` or a seccomp filter is on.

What to do
    Start the container with `--cap-add=SYS_PTRACE` (and a seccomp profile that allows
    pidfd_getfd), or unset `expandable_segments` in the trainer.

Not to be confused with
    expandable_segments alone, which is harmless where the capability is there.

Source
    https://github.com/verl-project/verl/issues/3377
"""

from __future__ import annotations

from typing import Final

from watchdog.findings import Finding, Refutation
from watchdog.signs import settings
from watchdog.signs.answers import finding, quotes, refuted
from watchdog.situation import Situation

CAUSE_CLASS: Final = "config_invalid"
FLAGS = ("colocate", "hybrid_engine")


def diagnose(situation: Situation) -> Finding | Refutation | None:
    """See the module docstring."""
    said = situation.log(r"pidfd_getfd")
    setting = settings.expandable_segments(situation)
    if said:
        sure = bool(setting) or bool(situation.log(r"CapEff|CAP_SYS_PTRACE|Seccomp"))
        return finding(
            __name__,
            CAUSE_CLASS,
            "confirmed" if sure else "likely",
            "The receiver may not open the trainer's IPC handle.",
            [*quotes(said, 2), *([setting] if setting else [])],
        )
    shared = situation.switches.on("colocate", "hybrid_engine")
    accepted = [
        c
        for h in situation.engine_histories
        for c in h.controls
        if c.op == "update" and c.stage == "end"
    ]
    if setting and accepted:
        return refuted(
            __name__,
            CAUSE_CLASS,
            f"{setting}, but {len(accepted)} updates were accepted over the same path",
        )
    if setting and shared:
        return finding(
            __name__,
            CAUSE_CLASS,
            "possible",
            "IPC handles of this allocator need the ptrace capability.",
            [setting],
        )
    return None
