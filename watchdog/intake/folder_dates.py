"""Folders of dumps beside a file that holds nothing but the time: `date > taken_at.txt`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from watchdog.intake.parts import Parts, ProcessPart
from watchdog.intake.times import Moment


def date_folders(parts: Parts) -> None:
    """Give the dumps of a folder the one time that a file in it tells.

    Not those that have a time of their own, and not two looks at one process: they had two times.
    """
    dates: dict[str, list[Moment]] = {}
    for name, moment in parts.dates:
        dates.setdefault(_folder(name), []).append(moment)
    looks = Counter(_look(part) for part in parts.processes if part.stack is not None)
    for index, part in enumerate(parts.processes):
        told = dates.get(_folder(part.file), [])
        if part.moment is None and len(told) == 1 and looks[_look(part)] == 1:
            parts.processes[index] = replace(part, moment=told[0])


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _look(part: ProcessPart) -> tuple[object, ...]:
    whose = part.who.or_else(part.file_who)
    return (_folder(part.file), whose.pid, whose.rank, whose.engine, whose.worker, whose.host)
