"""The arguments of the run that can matter: changed ones, and those that a rule looks at."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from watchdog.capture.target import Part, Target
from watchdog.evidence import Flag
from watchdog.masking import mask_value
from watchdog.recording import active_flags
from watchdog.run import flags_file

NAME = "flags"


def collect(target: Target) -> Part:
    """The active flags of this process; of another process nothing.

    They were captured when the arguments were validated, here or by the driver: nothing of the
    framework is touched now.
    """
    if not target.is_self:
        return Part()
    own = active_flags.snapshot()
    return Part(flags=relevant(flags_file.completed(own, os.environ), looked_at()))


def relevant(flags: Iterable[Flag], names: frozenset[str]) -> tuple[Flag, ...]:
    """Those that differ from their default or are among `names`, by name, masked."""
    kept = (flag for flag in flags if flag.value != flag.default or flag.name in names)
    return tuple(_masked(flag) for flag in sorted(kept, key=lambda flag: flag.name))


def looked_at() -> frozenset[str]:
    """The names of all flags that some rule looks at: each rule module's `FLAGS`."""
    from watchdog import rules  # late: it takes long, and most processes never stall

    return frozenset(name for rule in rules.RULES for name in getattr(rule, "FLAGS", ()))


def _masked(flag: Flag) -> Flag:
    def kept(value: str | int | float | bool | None) -> str | int | float | bool | None:
        return mask_value(flag.name, value) if isinstance(value, str) else value

    return replace(flag, value=kept(flag.value), default=kept(flag.default))
