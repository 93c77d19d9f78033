"""A speculating engine is updated through shared device memory.

What can happen
    Target and draft model both open the same IPC handles; one worker blocks in the destructor
    of the second, the others in the barrier behind it.

What decides
    The engine's version: whether each handle is opened once.

What to do
    Update SGLang, or switch speculation off until the first sync has passed.

Source
    https://github.com/sgl-project/sglang/pull/17870
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "cuda-ipc-handle-opened-twice"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    names = (
        "speculative_algorithm",
        "sglang_speculative_algorithm",
        "speculative_config",
        "mtp.enable_rollout",
    )
    if not launch.shares_devices or not launch.switches.on(*names):
        return None
    return Seen("suspect", launch.shown(*names, "colocate", "hybrid_engine"))
