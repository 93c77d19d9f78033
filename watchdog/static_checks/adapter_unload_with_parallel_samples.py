"""Adapters are replaced in an engine that serves several samples of one prompt.

What can happen
    The engine counts such a request up once and down once a sample: the unload waits for a
    counter that never comes to zero, and so does the trainer.

What decides
    Whether the framework unloads adapters or loads the new one under the same name, and whether
    the engine counts each request once (its version).

What to do
    Load under the same name, update the engine, or merge the adapters (--lora-train-only).

Source
    https://github.com/sgl-project/sglang/issues/36894
"""

from __future__ import annotations

from typing import Final

from watchdog.static_checks import modes
from watchdog.static_checks.launch import Launch, Seen

RULE: Final = "lora-unload-waits-for-requests"


def hazard(launch: Launch) -> Seen | None:
    """See the module docstring."""
    names = ("n_samples_per_prompt", "n_samples_per_eval_prompt", "rollout.n", "num_generations")
    several = [name for name in names if (launch.switches.number(name) or 1) > 1]
    if not several or not launch.tunes_lora:
        return None
    facts = launch.shown("lora_rank", "lora_adapter_path", "use_lora", "use_peft", *several)
    return Seen("likely" if modes.unloads_adapters(launch) else "suspect", facts)
