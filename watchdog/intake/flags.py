"""Arguments of the run, whatever form they were found in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from watchdog.evidence import Flag
from watchdog.masking import mask_value

MAX_VALUE_CHARS = 500
PAIR = re.compile(
    r"(?<![\w.])(?P<name>[a-z_][a-z0-9_]{1,100})="
    r"(?P<value>\[[^\]]{0,1000}\]|\"[^\"]{0,1000}\"|'[^']{0,1000}'|[^\s,()]{1,1000})"
)
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_FLOAT = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[+-]?\d{1,3})?", re.IGNORECASE)
_OPTION = re.compile(r"--?[A-Za-z][\w.\-]*$")
_OVERRIDE = re.compile(r"\+{0,2}(?P<name>[A-Za-z_][\w]*(?:[./][\w\-]+)*)=(?P<value>.*)$", re.DOTALL)
_ARGUMENT_NAME = re.compile(r"[A-Za-z_][\w.\-/]{0,200}$")


def scalar(text: str) -> str | int | float | bool | None:
    """The JSON value that a printed argument stands for."""
    stripped = text.strip()
    if len(stripped) >= 2 and stripped[0] == stripped[-1] and stripped[0] in "'\"":
        return stripped[1:-1]
    lower = stripped.lower()
    if lower in ("true", "false"):
        return lower == "true"
    if lower in ("none", "null", "~"):
        return None
    if _WHOLE.fullmatch(stripped):
        return int(stripped)
    if _FLOAT.fullmatch(stripped):
        return float(stripped)
    return stripped


def flag(name: str, value: object, origin: str) -> Flag:
    """One flag, named as the schema wants it, its value masked and clipped."""
    name = name.lstrip("-").replace("-", "_").replace("/", ".")
    if value is None or isinstance(value, (bool, int, float)):
        return Flag(name=name, value=value, origin=origin)
    text = str(value)[:MAX_VALUE_CHARS]
    masked = mask_value(name, text)
    return Flag(
        name=name, value=scalar(masked) if isinstance(value, str) else masked, origin=origin
    )


def flags_of_argv(argv: Sequence[str], origin: str) -> Iterator[Flag]:
    """Flags of one command: `--name value`, `--name=value`, `--switch`, `a.b=value`.

    A switch without a value is True; several values (`--layers a b`) become one text.
    """
    name, values = "", list[str]()
    for token in [*argv, "--"]:
        option, equals, value = token.partition("=")
        is_option = token == "--" or (
            _OPTION.match(option) is not None and not _WHOLE.fullmatch(token)
        )
        override = None if is_option else _OVERRIDE.match(token)
        if is_option or (override and not (name and not values)):
            if name:
                yield flag(name, " ".join(values) if values else True, origin)
            name, values = "", []
        if is_option and token != "--":
            if equals:
                yield flag(option, value, origin)
            else:
                name = option
        elif override and not name:
            yield flag(override["name"], override["value"], origin)
        elif name:
            values.append(token)


def is_argument_name(text: str) -> bool:
    """Whether this may be an argument's name."""
    return _ARGUMENT_NAME.match(text) is not None
