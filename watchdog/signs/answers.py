"""How a rule phrases its answer."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from watchdog.evidence import LogEvent, Process
from watchdog.findings import CauseClass, Confidence, Finding, Refutation
from watchdog.situation import Situation, lines
from watchdog.verdict.groups import phrase
from watchdog.verdict.judgement import name_of


def finding(
    module: str,
    cause_class: CauseClass,
    confidence: Confidence,
    summary: str,
    supports: Iterable[str] = (),
    refutes: Iterable[str] = (),
    culprits: Iterable[Process] = (),
    remedy: str = "",
) -> Finding:
    """A finding of the rule in this module; source and, if "", remedy come from its docstring."""
    return Finding(
        rule=_name(module),
        cause_class=cause_class,
        confidence=confidence,
        summary=summary,
        supports=tuple(dict.fromkeys(supports)),
        refutes=tuple(dict.fromkeys(refutes)),
        remedy=remedy,
        culprits=tuple(process.key for process in culprits),
    )


def refuted(module: str, cause_class: CauseClass, because: str) -> Refutation:
    """A refutation by the rule in this module."""
    return Refutation(_name(module), cause_class, because)


def _name(module: str) -> str:
    return module.rsplit(".", 1)[-1].replace("_", "-")


def seen(situation: Situation, process: Process) -> str:
    """What is seen of a process, for a list of supports."""
    wait, moved = situation.wait(process), situation.movements[process.key]
    text = f"{name_of(process)}: {phrase(wait)} at {wait.where}"
    if moved.moving is False and moved.between_s:
        text += f", the same {moved.between_s:.2g} s later"
    return text


def quoted(event: LogEvent) -> str:
    """A log line with its place and time, for a list of supports."""
    line = event.text.splitlines()[0][:200] if event.text else event.kind
    place = lines.cited(event)
    return f"{place}: {line}" if place else line


def quotes(events: Iterable[LogEvent], most: int) -> list[str]:
    """The first few of log lines; one that means two things at once stands in them once."""
    return list(islice(dict.fromkeys(map(quoted, events)), most))
