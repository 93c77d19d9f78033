"""The arguments of the run, as they were when the framework had validated them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from watchdog.evidence import Flag

_values: dict[str, Any] = {}
_defaults: dict[str, Any] = {}
_origin = ""
_MAX_DEPTH = 8


def record(arguments: object, origin: str, defaults: Mapping[str, Any] | None = None) -> None:
    """Keep a copy of the arguments; a later call replaces it.

    Args:
        arguments: A namespace or other object with attributes; nothing of it is changed.
        origin: The function that validated it.
        defaults: Name to default, where the caller knows them.
    """
    _keep(dict(vars(arguments)), origin)
    if defaults:
        _defaults.update(defaults)
    publish()


def record_if_none(arguments: object, origin: str) -> None:
    """Keep a copy of the arguments unless validated ones are there already."""
    if not _values and hasattr(arguments, "__dict__"):
        _keep(dict(vars(arguments)), origin)


def record_tree(config: object, origin: str) -> None:
    """Keep a copy of a nested configuration, with dotted names.

    Args:
        config: Mapping, dataclass, pydantic model, OmegaConf node or namespace, nested in any
            way; anything else is left out.
        origin: Where it was seen.
    """
    values = dict(_leaves(config, "", depth=0))
    if values:
        _keep(values, origin)
        publish()


def _keep(values: dict[str, Any], origin: str) -> None:
    global _values, _origin
    _values, _origin = values, origin


def publish() -> None:
    """Let ranks that never see the arguments read them, if this process is no rank itself."""
    if not _values:
        return
    # Here, not at the top: a process that validates nothing needs none of it.
    from watchdog.run import flags_file

    flags_file.publish(snapshot)


def _leaves(node: Any, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    children = _children(node)
    if children is None or depth > _MAX_DEPTH:
        if prefix:
            yield prefix, node
        return
    for name, child in children.items():
        yield from _leaves(child, f"{prefix}.{name}" if prefix else str(name), depth + 1)


def _children(node: Any) -> Mapping[Any, Any] | None:
    if isinstance(node, Mapping) or type(node).__name__ == "DictConfig":
        return dict(node.items())
    fields = getattr(type(node), "model_fields", None) or getattr(
        type(node), "__dataclass_fields__", None
    )
    if fields:
        return {name: getattr(node, name, None) for name in fields}
    return vars(node) if type(node).__name__ in ("Namespace", "SimpleNamespace") else None


def defaults_from(provider: Any) -> None:
    """Learn the defaults from a function that adds the framework's arguments to a parser.

    Args:
        provider: Takes an `argparse` parser and returns it. It is called with one of our own.
    """
    if not callable(provider):
        return
    # Put off to when somebody asks: it builds hundreds of arguments.
    _providers.append(functools.partial(_defaults_of, provider))


def snapshot() -> tuple[Flag, ...]:
    """All arguments by name, with defaults where they are known; empty before validation.

    Values that JSON cannot hold are shown as text, at most 500 characters. Not masked.
    """
    while _providers:
        found = _providers.pop()()
        for name, value in found.items():
            _defaults.setdefault(name, value)
    return tuple(
        Flag(name, _plain(value), _plain(_defaults.get(name)), _origin)
        for name, value in sorted(_values.items())
        if not name.startswith("_")
    )


_providers: list[Callable[[], dict[str, Any]]] = []


def _defaults_of(provider: Callable[[Any], Any]) -> dict[str, Any]:
    import argparse

    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    try:
        provider(parser)
    except Exception:
        # Written for the parser of the framework only; the flags stay without defaults.
        return {}
    return {action.dest: action.default for action in parser._actions}


def _plain(value: Any) -> str | int | float | bool | None:
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    try:
        return str(value)[:500]
    except Exception:
        return f"<{type(value).__name__}>"
