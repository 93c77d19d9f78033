"""The marks of a black box as lines, what repeats folded into one."""

from __future__ import annotations

from collections.abc import Sequence

from watchdog.evidence import Mark
from watchdog.reports.wording import seconds

_LONGEST_CYCLE = 4
# Of each call another one: two calls that differ in nothing else are the same line.
_OF_ONE_CALL = ("number ", "took ")


def history_lines(history: Sequence[Mark]) -> list[str]:
    """One line a mark, oldest first; a run of equal ones is one line with their count.

    A cycle of up to four marks, as a loop leaves it, is told once with the number of its rounds.
    """
    keys = [_key(mark) for mark in history]
    lines: list[str] = []
    at = 0
    while at < len(history):
        width, rounds = _cycle(keys, at)
        marks = history[at : at + width * rounds]
        if width == 1:
            lines.append(_line(marks))
        else:
            lines += [_line((mark,)) for mark in marks[:width]]
            until = seconds(_last_age_s(marks[-1]))
            lines.append(f"  … these {width} lines x{rounds}, until {until} before")
        at += len(marks)
    return lines


def _cycle(keys: Sequence[object], at: int) -> tuple[int, int]:
    """Length of the shortest cycle that begins here, and how often it is gone through."""
    for width in range(1, _LONGEST_CYCLE + 1):
        cycle = keys[at : at + width]
        rounds = 1
        while keys[at + rounds * width : at + (rounds + 1) * width] == cycle:
            rounds += 1
        if rounds > 1 and (width == 1 or rounds > 2):
            return width, rounds
    return 1, 1


def _key(mark: Mark) -> tuple[str, str, tuple[str, ...]]:
    return mark.kind, mark.name, tuple(_parts(mark, shared=True))


def _parts(mark: Mark, *, shared: bool) -> list[str]:
    parts = mark.detail.split(", ") if mark.detail else []
    return [part for part in parts if part.startswith(_OF_ONE_CALL) != shared]


def _line(marks: Sequence[Mark]) -> str:
    """One line for marks that are equal but for number and time."""
    first, last = marks[0], marks[-1]
    count = sum(mark.num_marks for mark in marks)
    if count == 1:
        text = f"{seconds(first.age_s)} before: {first.kind} {first.name}"
        return f"{text}: {first.detail}" if first.detail else text
    since, until = seconds(first.age_s), seconds(_last_age_s(last))
    times = since if since == until else f"{since} to {until}"
    text = f"{times} before: {first.kind} {first.name} x{count}"
    return ", ".join([text, *_parts(first, shared=True)])


def _last_age_s(mark: Mark) -> float:
    return mark.age_s if mark.last_age_s is None else mark.last_age_s
