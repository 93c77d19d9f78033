"""Configuration in YAML or TOML, hierarchical names joined by dots."""

from __future__ import annotations

import re
import sys
from typing import Any

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from watchdog.intake.blocks import Context
from watchdog.intake.flags import flag
from watchdog.intake.parts import Parts

MAX_LEAVES = 4_000
MAX_DEPTH = 24
MAX_ALIASES = 200
MAX_BYTES = 2 * 2**20

_YAML_LINE = re.compile(r"^\s*(?:- )?[A-Za-z_][\w.\-/]{0,100}:(?:\s|$)")
_TOML_LINE = re.compile(r"^\s*[A-Za-z_][\w.\-]{0,100}\s*=\s*(?:[\"'\[{]|true|false|[+-]?\d)")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=")
_TOML_TABLE = re.compile(r"^\s*\[\[?[\w.\-\"]+\]\]?\s*(?:#.*)?$")
_LOG_LIKE = re.compile(r"^\s*\S{0,20}\d\d:\d\d:\d\d")
# `/proc/<pid>/status` also is `Name: value`, and is none.
_NOT_A_CONFIG = re.compile(r"^(?:Name|State|Tgid|VmRSS|rchar|CapEff):\s", re.MULTILINE)


def score(head: str) -> float:
    """Nearly every line is `key: value`, `key = value`, a table's name or a list's item."""
    lines = [
        line for line in head.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    if len(lines) < 2 or _NOT_A_CONFIG.search(head):
        return 0.0
    if all(_VARIABLE.match(line) for line in lines):
        return 0.0  # an environment
    if sum(_LOG_LIKE.match(line) is not None for line in lines) * 4 > len(lines):
        return 0.0
    tables = sum(_TOML_TABLE.match(line) is not None for line in lines)
    pairs = sum(_TOML_LINE.match(line) is not None for line in lines)
    if pairs and (tables + pairs) * 10 >= len(lines) * 9 and (tables or pairs >= 2):
        return 0.75
    keys = sum(_YAML_LINE.match(line) is not None for line in lines)
    items = sum(line.lstrip().startswith("- ") for line in lines)
    return 0.7 if keys >= 2 and (keys + items) * 10 >= len(lines) * 8 else 0.0


def parse(text: str, context: Context, parts: Parts) -> None:
    """One flag a leaf: `actor.fsdp_config.strategy`."""
    if len(text) > MAX_BYTES:
        raise ValueError("too large for a configuration")
    data = _toml(text) if _is_toml(text) else _yaml(text)
    if not isinstance(data, dict) or not data:
        raise ValueError("no mapping")
    leaves = leaves_of(data)
    if not leaves:
        raise ValueError("no setting")
    for name, value in leaves:
        parts.add_flag(flag(name, value, context.file))


def _is_toml(text: str) -> bool:
    lines = [line for line in text.splitlines()[:400] if line.strip() and line.strip()[0] != "#"]
    return sum(bool(_TOML_LINE.match(line) or _TOML_TABLE.match(line)) for line in lines) * 2 > len(
        lines
    )


def _toml(text: str) -> Any:
    return tomllib.loads(text)


class _Loader(yaml.SafeLoader):
    """Plain data only, and no more aliases than a person writes."""

    num_aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Count the aliases: nested ones grow without bound when they are followed."""
        if self.check_event(yaml.AliasEvent):
            self.num_aliases += 1
            if self.num_aliases > MAX_ALIASES:
                raise ValueError(f"more than {MAX_ALIASES} aliases")
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


def _yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}"[:300]) from error


def leaves_of(data: object) -> list[tuple[str, object]]:
    """Name and value of every scalar, names joined by dots; a list of scalars is one value."""
    leaves: list[tuple[str, object]] = []
    _flatten(data, "", 0, leaves)
    return leaves


def _flatten(value: object, name: str, depth: int, leaves: list[tuple[str, object]]) -> None:
    if len(leaves) >= MAX_LEAVES or depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            _flatten(item, f"{name}.{key}" if name else str(key)[:200], depth + 1, leaves)
    elif isinstance(value, list):
        if all(not isinstance(item, (dict, list)) for item in value):
            leaves.append((name, ",".join(str(item) for item in value[:50])))
        else:
            for index, item in enumerate(value[:50]):
                _flatten(item, f"{name}.{index}", depth + 1, leaves)
    else:
        leaves.append((name, value))
