"""Ray's runtime environment as JSON: the variables that the workers really get."""

from __future__ import annotations

import json

from watchdog.intake.blocks import Context
from watchdog.intake.parts import Parts
from watchdog.masking import mask_mapping


def score(head: str) -> float:
    """An object with `env_vars`."""
    start = head.lstrip()
    return 0.9 if start.startswith("{") and '"env_vars"' in start[:4000] else 0.0


def parse(text: str, context: Context, parts: Parts) -> None:
    """The variables, masked."""
    variables = variables_of(json.loads(text))
    if not variables:
        raise ValueError("no variables")
    parts.add_variables(variables)
    parts.add_note(f"{context.file}: variables of Ray's runtime environment")


def variables_of(data: object) -> dict[str, str]:
    """`env_vars` of a runtime environment, masked; empty for anything else."""
    found = data.get("env_vars") if isinstance(data, dict) else None
    if not isinstance(found, dict):
        return {}
    return mask_mapping({str(name)[:200]: str(value)[:2000] for name, value in found.items()})
