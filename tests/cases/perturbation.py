"""Changes to a case's files that leave the situation what it is, or take a piece of it away.

A case is a dict from file name to text. Every change is a pure function of case and seed; those
that rename something also give the map by which the expected answer has to be read.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

Files = dict[str, str]

_RANK = re.compile(r"(?i)(?<![a-z])(rank[ _]?)(\d{1,3})(?!\d)")
_PID = re.compile(
    r"(?:pid[ =:]+|Process |Thread |/proc/|process )(\d{4,7})\b|_pid(\d{4,7})\b|_(\d{5,7})\.\w+$"
)
_ADDRESS = re.compile(r"\b(10|172)\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\b")
_NOISE = (
    "INFO: heartbeat ok",
    "DEBUG cache hit ratio 0.97",
    "WARNING: tokenizer parallelism is disabled",
    "wandb: syncing run",
    "FutureWarning: this option will be removed",
)


@dataclass(frozen=True)
class Changed:
    """A changed case.

    Attributes:
        files: Its files.
        ranks: Old rank to new one; ranks that are not named keep theirs.
        pids: Old process id to new one.
    """

    files: Files
    ranks: dict[int, int] = field(default_factory=dict)
    pids: dict[int, int] = field(default_factory=dict)


def other_pids(files: Files, seed: int) -> Changed:
    """Give every process another id, everywhere."""
    text = "\n".join([*files, *files.values()])
    found = {int(next(filter(None, match.groups()))) for match in _PID.finditer(text)}
    offset = random.Random(seed).randrange(100, 900)
    pids = {pid: pid + offset for pid in found}
    # One pass over all numbers, so that no new id is renamed again.
    number = re.compile(
        r"(?<![\d.])(" + "|".join(map(str, sorted(pids, reverse=True))) + r")(?![\d.]\d|\d)"
    )

    def replaced(content: str) -> str:
        return number.sub(lambda match: str(pids[int(match[1])]), content) if pids else content

    return Changed(
        {replaced(name): replaced(content) for name, content in files.items()}, pids=pids
    )


def other_ranks(files: Files, seed: int) -> Changed:
    """Exchange two trainer ranks other than 0 where that is all that names them."""
    text = "\n".join([*files, *files.values()])
    found = sorted({int(match[2]) for match in _RANK.finditer(text)} - {0})
    if len(found) < 2:
        return Changed(files)
    one, other = random.Random(seed).sample(found, 2)
    ranks = {one: other, other: one}

    def replaced(content: str) -> str:
        return _RANK.sub(lambda m: f"{m[1]}{ranks.get(int(m[2]), int(m[2]))}", content)

    return Changed(
        {replaced(name): replaced(content) for name, content in files.items()}, ranks=ranks
    )


def other_addresses(files: Files, seed: int) -> Changed:
    """Move the hosts to another network."""
    third = random.Random(seed).randrange(1, 250)

    def replaced(content: str) -> str:
        return _ADDRESS.sub(lambda m: f"{m[1]}.{(int(m[2]) + third) % 250}.{m[3]}.{m[4]}", content)

    return Changed({name: replaced(content) for name, content in files.items()})


def noise_in_logs(files: Files, seed: int) -> Changed:
    """Put lines that mean nothing between those of the logs."""
    chance = random.Random(seed)

    def noisy(name: str, content: str) -> str:
        if not name.endswith(".log"):
            return content
        lines = content.split("\n")
        for _ in range(max(3, len(lines) // 10)):
            # Never into a traceback, which a line in between would cut.
            at = chance.randrange(len(lines) + 1)
            if not re.match(
                r".*(Traceback|^\s+|File \"|\w+Error)", "\n".join(lines[max(0, at - 2) : at + 2])
            ):
                lines.insert(at, chance.choice(_NOISE))
        return "\n".join(lines)

    return Changed({name: noisy(name, content) for name, content in files.items()})


def windows_lines(files: Files, seed: int) -> Changed:
    """As an editor on another system saves them."""
    return Changed({name: content.replace("\n", "\r\n") for name, content in files.items()})


def in_folders(files: Files, seed: int) -> Changed:
    """Sorted into folders."""
    chance = random.Random(seed)
    return Changed(
        {f"{chance.choice(('a', 'b', 'dumps'))}/{name}": text for name, text in files.items()}
    )


def without_a_file(files: Files, seed: int) -> Changed:
    """One of the files was not kept."""
    lost = random.Random(seed).choice(sorted(files))
    return Changed({name: content for name, content in files.items() if name != lost})


def meaningless_names(files: Files, seed: int) -> Changed:
    """Names that say nothing of rank, role or process."""
    chance = random.Random(seed)
    names = sorted(files)
    chance.shuffle(names)
    renamed = {name: f"upload_{i:02d}." + name.rsplit(".", 1)[-1] for i, name in enumerate(names)}
    return Changed({renamed[name]: content for name, content in files.items()})


def without_prefixes(files: Files, seed: int) -> Changed:
    """Logs whose lines lost what the launcher put before them."""
    prefix = re.compile(
        r"(?m)^(?:\x1b\[\d+m)?\((?:[\w:]+ )?pid=\d+(?:,"
        r" ip=[\d.]+)?\)(?:\x1b\[0m)? |^\[default\d+\]:"
    )
    return Changed(
        {
            name: prefix.sub("", text) if name.endswith(".log") else text
            for name, text in files.items()
        }
    )


def cut_short(files: Files, seed: int) -> Changed:
    """The last fifth of every log is missing."""
    return Changed({n: t[: len(t) * 4 // 5] if n.endswith(".log") else t for n, t in files.items()})


KEEPING: tuple[Callable[[Files, int], Changed], ...] = (
    other_pids,
    other_ranks,
    other_addresses,
    noise_in_logs,
    windows_lines,
    in_folders,
)
"""After these the answer must be what it was."""

TAKING: tuple[Callable[[Files, int], Changed], ...] = (
    without_a_file,
    meaningless_names,
    without_prefixes,
    cut_short,
)
"""After these the answer may become `unknown`, never wrong."""
