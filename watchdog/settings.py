"""Every knob of the watchdog in one table: one line each, all of them environment variables.

Reading them never fails: a bad value costs one warning, and the default is used instead.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PREFIX = "MILES_WATCHDOG"


# Whatever else stands there was meant to turn it on. The `.pth` and `section` look at the same
# words, without this module; a test holds the three together.
OFF = ("", "0", "off", "false", "no")
_ON = ("1", "on", "true", "yes")


def _switch(text: str) -> bool:
    return text.lower() not in OFF


def _positive_s(text: str) -> float:
    seconds = float(text)
    if not (seconds > 0 and math.isfinite(seconds)):
        raise ValueError("must be a finite number of seconds above 0")
    return seconds


def _seconds_or_auto(text: str) -> float | None:
    return None if text.lower() == "auto" else _positive_s(text)


def _seconds_or_never(text: str) -> float | None:
    return None if text.lower() in ("never", "off") else _positive_s(text)


def _seconds_auto_or_off(text: str) -> float | None:
    return math.inf if text.lower() in ("0", "off", "never") else _seconds_or_auto(text)


def _native(text: str) -> str:
    if text.lower() not in ("auto", "0", "1"):
        raise ValueError("must be auto, 0 or 1")
    return text.lower()


def _count(text: str) -> int:
    if int(text) < 1:
        raise ValueError("must be a whole number of at least 1")
    return int(text)


def _megabytes(text: str) -> int:
    unit = re.fullmatch(r"(\d+)\s*MB", text, re.IGNORECASE)
    return _count(unit[1] if unit else text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def knob(
    default: Any,
    help: str,
    *,
    parse: Callable[[str], Any],
    variable: str,
    unit: str = "",
    default_text: str = "",
) -> Any:
    """Declare one setting; variable, default, help and parser lie in its one line.

    Args:
        default: Value when the variable is unset or bad.
        help: One or two sentences for the README, `miles-watchdog settings` and the log.
        parse: Text to value; raises `ValueError` that says what the value must be.
        variable: Name after `MILES_WATCHDOG_`; "" for `MILES_WATCHDOG` itself.
        unit: `s`, `MB` … or "".
        default_text: How the default reads where `str(default)` would not say it.
    """
    name = f"{PREFIX}_{variable}" if variable else PREFIX
    text = default_text or str(default)
    return field(
        default=default,
        metadata={"variable": name, "unit": unit, "help": help, "parse": parse, "text": text},
    )


@dataclass(frozen=True)
class Settings:
    """All settings of one process.

    Attributes:
        enabled: Whether the watchdog is on.
        dir: Folder of all runs.
        stall_after_s: Deadline of a section (s); `None` = learned from the run.
        collective_after_s: Deadline of a blocking collective outside of any section (s);
            `None` = as for sections; infinite = not timed.
        abort_after_s: Time from stall to the end of the rank (s); `None` = never.
        on_stall: Shell command, "" = none.
        native: `auto`, `0` or `1`.
        max_incidents: Incidents of a run that are written at most.
        max_incident_mb: Size of one incident's folder at most (MB).
        redact: Further name fragments whose values are masked.
        warnings: One sentence for each bad value, naming variable, value and what is used.
        origins: Attribute to `default`, `environment` or `default, since the value is bad`.
    """

    enabled: bool = knob(
        False,
        "1 turns the watchdog on; 0, off, false or no leaves it off.",
        parse=_switch,
        variable="",
        default_text="0",
    )
    dir: str = knob(
        "./watchdog-runs", "Folder that gets one subfolder a run.", parse=str, variable="DIR"
    )
    stall_after_s: float | None = knob(
        None,
        "Time (s) after which a weight sync counts as stalled. auto: 300 s for the first three "
        "syncs, then four times the longest so far but at least 60 s; never more than 40 % of "
        "the process group's own time-out.",
        parse=_seconds_or_auto,
        variable="STALL_AFTER",
        unit="s",
        default_text="auto",
    )
    collective_after_s: float | None = knob(
        None,
        "The same for a blocking collective outside of any weight sync. auto: STALL_AFTER where "
        "that is set, else 300 s or four times the longest so far; off: not timed.",
        parse=_seconds_auto_or_off,
        variable="COLLECTIVE_AFTER",
        unit="s",
        default_text="auto",
    )
    abort_after_s: float | None = knob(
        None,
        "Time (s) after a stall at which the rank is ended, once the report is written.",
        parse=_seconds_or_never,
        variable="ABORT_AFTER",
        unit="s",
        default_text="never",
    )
    on_stall: str = knob(
        "",
        "Command that is run once an incident, with the path of report.md as last argument.",
        parse=str,
        variable="ON_STALL",
        default_text="none",
    )
    native: str = knob(
        "auto",
        "Native frames: auto takes them of the suspects, 1 of every rank, 0 of none.",
        parse=_native,
        variable="NATIVE",
    )
    max_incidents: int = knob(
        5, "Incidents of a run that are written at most.", parse=_count, variable="MAX_INCIDENTS"
    )
    max_incident_mb: int = knob(
        64,
        "Size of one incident's folder at most.",
        parse=_megabytes,
        variable="MAX_INCIDENT_MB",
        unit="MB",
    )
    redact: tuple[str, ...] = knob(
        (),
        "Comma-separated fragments of further names whose values are masked.",
        parse=_names,
        variable="REDACT",
        default_text="none",
    )
    warnings: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """Read all knobs; never raises.

        Args:
            environ: Variable to value, e.g. `os.environ`. Blank values count as unset.
        """
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        warnings: list[str] = []
        for knob_field in _knob_fields():
            variable = knob_field.metadata["variable"]
            text = environ.get(variable, "").strip()
            origins[knob_field.name] = "environment" if text else "default"
            if not text:
                continue
            try:
                values[knob_field.name] = knob_field.metadata["parse"](text)
            except ValueError as error:
                origins[knob_field.name] = "default, since the value is bad"
                warnings.append(_bad_value(variable, text, error, knob_field.metadata["text"]))
        warnings += [*_unknown_switch(environ), *_unknown_variables(environ)]
        return cls(**values, warnings=tuple(warnings), origins=origins)


@dataclass(frozen=True)
class Knob:
    """One setting as people read it.

    Attributes:
        variable: Environment variable.
        value: Value in use, as text.
        default: Default, as text.
        unit: `s`, `MB` … or "".
        help: One or two sentences.
        origin: Where the value came from.
    """

    variable: str
    value: str
    default: str
    unit: str
    help: str
    origin: str


def knobs(settings: Settings | None = None) -> tuple[Knob, ...]:
    """List every knob in the order of the table, with its value in the given settings."""
    settings = settings or Settings()
    return tuple(
        Knob(
            variable=knob_field.metadata["variable"],
            value=_value_text(knob_field, getattr(settings, knob_field.name)),
            default=knob_field.metadata["text"],
            unit=knob_field.metadata["unit"],
            help=knob_field.metadata["help"],
            origin=settings.origins.get(knob_field.name, "default"),
        )
        for knob_field in _knob_fields()
    )


def _knob_fields() -> list[dataclasses.Field[Any]]:
    return [one for one in dataclasses.fields(Settings) if "variable" in one.metadata]


def _value_text(knob_field: dataclasses.Field[Any], value: Any) -> str:
    if value == knob_field.default:
        return str(knob_field.metadata["text"])
    if value == math.inf:
        return "off"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:g}"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _bad_value(variable: str, text: str, error: ValueError, used: str) -> str:
    reason = str(error) if "must" in str(error) else "is not a number"
    return f"{variable}={text[:80]!r} {reason}; {used} is used instead"


def _unknown_switch(environ: Mapping[str, str]) -> list[str]:
    text = environ.get(PREFIX, "").strip()
    if text.lower() in (*OFF, *_ON):
        return []
    return [f"{PREFIX}={text[:80]!r} counts as 1; 0 turns the watchdog off"]


# Set by the watchdog itself for its children, or read by other parts; none is a knob.
_INTERNAL = frozenset({"RUN", "OWNER", "DEMO"})


def _unknown_variables(environ: Mapping[str, str]) -> list[str]:
    known = {knob_field.metadata["variable"] for knob_field in _knob_fields()}
    known |= {f"{PREFIX}_{name}" for name in _INTERNAL}
    unknown = sorted(
        name for name in environ if name.startswith(f"{PREFIX}_") and name not in known
    )
    return [f"{name} is not a setting of the watchdog; it is ignored" for name in unknown]
