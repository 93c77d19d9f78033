"""How a run works, as far as several checks need it."""

from __future__ import annotations

import json

from watchdog.static_checks.launch import Launch

_ASYNC_FLAGS = ("fully_async", "async_training", "use_fully_async")
_ASYNC_PROGRAMS = ("train_async", "fully_async")


def is_async(launch: Launch) -> bool:
    """Whether generation goes on while the trainer trains, so that a sync meets requests."""
    return launch.switches.on(*_ASYNC_FLAGS) or launch.started(*_ASYNC_PROGRAMS)


def shown_async(launch: Launch) -> tuple[str, ...]:
    """What says so, for a list of facts."""
    programs = (p.name for p in launch.programs if any(w in p.name for w in _ASYNC_PROGRAMS))
    return (*launch.shown(*_ASYNC_FLAGS), *programs)


def unloads_adapters(launch: Launch) -> bool:
    """Whether a program that is started here calls the unload of adapters itself."""
    return any("unload_lora_adapter" in text for text in launch.sources.values())


def set_for_trainers(launch: Launch, name: str) -> set[str]:
    """Values that arguments give a variable in the trainers alone."""
    return _given(launch, ("train_env_vars",), name)


def set_for_engines(launch: Launch, name: str) -> set[str]:
    """Values that arguments give a variable in the engines alone."""
    return _given(launch, ("rollout_env_vars", "sglang_env_vars", "engine_env_vars"), name)


def _given(launch: Launch, flags: tuple[str, ...], name: str) -> set[str]:
    found = set()
    for flag in flags:
        value = launch.switches.value(flag)
        try:
            data = json.loads(value) if isinstance(value, str) else None
        except ValueError:
            continue
        if isinstance(data, dict) and name in data:
            found.add(str(data[name]))
    return found
