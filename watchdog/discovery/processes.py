"""All processes of this host, as `/proc` shows them at one moment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from watchdog.capture import bounded, proc

_MAX_ENVIRON_S = 1.5
_TITLE = re.compile(r"(?:ray|sglang|VLLM|PRIME-RL)::|\S*pt_elastic")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*$|pt_main_thread")
# Options of the interpreter that take the next word.
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


@dataclass(frozen=True)
class Seen:
    """One process.

    Attributes:
        pid: Its process id.
        parent: Its parent's; 0 where that is outside of this namespace.
        ticks: When it started (clock ticks since boot): with the pid it is unmistakable.
        state: The kernel's letter: `R`, `S`, `D`, `T`, `Z` …
        name: `comm`, at most 15 characters.
        words: Command line or title; empty of a zombie or a kernel thread.
        environ: What it was started with; `None` where reading it was refused or took too long.
    """

    pid: int
    parent: int
    ticks: int
    state: str = "S"
    name: str = ""
    words: tuple[str, ...] = ()
    environ: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def line(self) -> str:
        """Command line or title as one text."""
        return " ".join(self.words).strip()

    @property
    def has_title(self) -> bool:
        """Whether it overwrote its command line with a title, as Ray and the engines do."""
        return _TITLE.match(self.line) is not None

    @property
    def is_python(self) -> bool:
        """Whether it runs Python, as far as command line and name tell."""
        first = os.path.basename(self.words[0]) if self.words else self.name
        return self.has_title or _PYTHON.match(first) is not None

    @property
    def program(self) -> str:
        """What Python runs, and the word behind it: `torch.distributed.run --nproc`, `vllm serve`.

        "" for `python -c`, for what is no Python, and for a title.
        """
        if not self.is_python or self.has_title:
            return ""
        words = list(self.words[1:])
        while words:
            word = words.pop(0)
            if word == "-m":
                return " ".join(words[:2])
            if word == "-c":
                return ""
            if word in _WITH_VALUE:
                words = words[1:]
            elif not word.startswith("-"):
                return " ".join((os.path.basename(word), *words[:1]))
        return ""

    def variable(self, name: str) -> str:
        """A variable that it was started with, "" where it has none or may not be asked."""
        return (self.environ or {}).get(name, "")


def processes_of_this_host(*, with_self: bool = False) -> dict[int, Seen]:
    """Every process that can be seen, by pid, ascending.

    Takes a bounded time: reading an environment waits for a lock of that process.

    Args:
        with_self: Whether the caller's own process is one of them.
    """
    left_out = 0 if with_self else os.getpid()
    found: dict[int, Seen] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != left_out and (one := _seen(int(name))):
            found[one.pid] = one
    jobs = {pid: partial(_environ, pid) for pid, one in found.items() if one.words}
    for pid, outcome in bounded.results(jobs, timeout_s=_MAX_ENVIRON_S).items():
        if not isinstance(outcome, Exception):
            found[pid] = replace(found[pid], environ=outcome)
    return dict(sorted(found.items()))


def ancestors(everything: Mapping[int, Seen], pid: int) -> list[int]:
    """Parent, its parent, and so on, as far as they are among the processes."""
    above: list[int] = []
    while (one := everything.get(pid)) is not None and one.parent in everything:
        if one.parent in above:  # a pid was used again while we read
            break
        pid = one.parent
        above.append(pid)
    return above


def _seen(pid: int) -> Seen | None:
    try:
        text = proc.read_text(f"/proc/{pid}/stat")
        words = tuple(proc.command(pid))
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    name = text.partition("(")[2].rpartition(")")[0]
    return Seen(pid, int(fields[1]), int(fields[19]), fields[0], name, words)


def _environ(pid: int) -> dict[str, str]:
    pairs = proc.read_text(f"/proc/{pid}/environ").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
