"""Lines that say whose and when the following ones are: headings, prompts, `date`, dump headers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from watchdog.evidence import Gap, Role
from watchdog.intake.parts import NOBODY, Who
from watchdog.intake.prefixes import who_by_process_name
from watchdog.intake.times import Moment, find_moment
from watchdog.masking import mask_text

MARKER_LITERALS = ("[debug-pyspy]", "Pyspy dump for PID", "pyspy dump for PID")


@dataclass(frozen=True)
class Marker:
    """What such a line says.

    Attributes:
        who: Whose the following lines are; replaces what was said before.
        moment: When they were taken, `None` if it does not tell.
        resets: Whether earlier hints on the process end here although `who` is empty.
        title: The heading or command itself, clipped.
        gap: A dump that failed.
    """

    who: Who = NOBODY
    moment: Moment | None = None
    resets: bool = False
    title: str = ""
    gap: Gap | None = None


_PERIODIC = re.compile(r"=====+ \[debug-pyspy\] ts=(\d{9,11})")
_PERIODIC_ONE = re.compile(r"-----+ \[debug-pyspy\] pid=(\d{1,10})(?: cmd=(.*))?$")
_FAILED = re.compile(r"\s*DUMP FAILED:? ?(.*)$")
_FOR_PID = re.compile(r"[Pp]yspy dump for PID (\d{1,10})")
_HEADING = re.compile(
    r"(?:#{1,6}|={2,}|-{3,}|\*{2,}|>{2,})\s*(?P<title>[^#=*\s-].{0,200}?)\s*[#=*-]*$"
)
_PROMPT = re.compile(r"(?:[\w.\-]+@[\w.\-]+[:\s]\S{0,80})?[$#] (?P<command>\S.*)$")
_TITLE_RANK = re.compile(
    r"(?P<part>[A-Za-z]{3,20})?[ _-]*\brank[ _:=-]*(?P<rank>\d{1,6})\b", re.IGNORECASE
)
_TITLE_LOCAL_RANK = re.compile(r"\blocal[ _-]?rank[ _:=-]*(?P<rank>\d{1,5})\b", re.IGNORECASE)
_FRAME = re.compile(r"#\d+ +(?:0x[0-9a-f]+ in |[\w:]+ ?\()")
_MAP = re.compile(r"\d ?[=:] ?\d{2,9}[,;] *(?:rank )?\d{1,6} ?[=:] ?\d{2,9}")
_CHILDREN = re.compile(r"\b(?:children|child(?:ren)? processes|workers|sub-?processes) of\b", re.I)
_BARE_RANK = re.compile(
    r"(?:[(\[<{]\s*(?:global |trainer )?rank[ _:=#-]*\d{1,6}\s*[)\]>}]:?|Rank \d{1,6}:)\s*",
    re.IGNORECASE,
)
_TITLE_ENGINE = re.compile(r"\b(?:engine|server|replica)[ _:#-]*(?P<engine>\d{1,5})\b", re.I)
_TITLE_PID = re.compile(r"(?:\bpid[ =:]*|/proc/|-p |--pid[ =])(?P<pid>\d{1,10})\b", re.IGNORECASE)
_TITLE_HOST = re.compile(r"\b(?:on|host|node)[ :=]+(?P<host>[A-Za-z][\w.\-]*\d[\w.\-]*)")
_DATE = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} +\d{1,2} \d\d:\d\d:\d\d")
_CLOCK = re.compile(r"\s*(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\s*")
_ENGINE_PARTS = ("rollout", "engine", "inference", "generation", "server", "sglang", "vllm")


def read_marker(text: str) -> Marker | None:
    """What a line says on the lines after it, `None` if it is no such line."""
    if "debug-pyspy" in text or "yspy dump for PID" in text:
        return _dump_header(text)
    first = text[:1]
    if first and first in "#=-*>":
        if _FRAME.match(text):
            return None
        match = _HEADING.match(text)
        return _heading(match["title"]) if match else None
    if first and first in "([<{R" and _BARE_RANK.fullmatch(text):
        return _heading(text.strip("()[]<>{}: "))
    if "$ " in text[:120] or "# " in text[:120]:
        match = _PROMPT.match(text)
        return _prompt(match["command"]) if match else None
    if len(text) < 60 and (_DATE.match(text) or _CLOCK.fullmatch(text)):
        found = find_moment(text)
        return Marker(moment=found[0]) if found else None
    return None


def _dump_header(text: str) -> Marker | None:
    periodic = _PERIODIC.search(text)
    if periodic:
        return Marker(moment=Moment(float(periodic[1]), absolute=True), resets=True)
    one = _PERIODIC_ONE.search(text)
    if one:
        command, gap = one[2] or "", None
        failed = _FAILED.search(command)
        if failed:
            command = command[: failed.start()]
            gap = Gap(
                what=f"stack of pid {one[1]}",
                why=failed[1][:300],
                remedy="py-spy dump --nonblocking --pid " + one[1],
            )
        command = mask_text(command)[:2000]
        who = Who(pid=int(one[1]), command=command, by=("header of the periodic dump",))
        return Marker(who.or_else(who_by_process_name(command)), resets=True, gap=gap)
    pid = _FOR_PID.search(text)
    return Marker(Who(pid=int(pid[1]), by=("header of the dump",)), resets=True) if pid else None


def _heading(title: str) -> Marker | None:
    who = who_by_title(title)
    found = find_moment(title)
    if title.isdigit() and len(title) > 2:
        who = Who(pid=int(title[:10]), by=(f"heading {title}",))
    if who is NOBODY and found is None:
        return Marker(resets=False) if len(title) < 80 else None
    return Marker(who, found[0] if found else None, resets=who is not NOBODY, title=title)


def _prompt(command: str) -> Marker:
    match = _TITLE_PID.search(command)
    who = Who(pid=int(match["pid"]), by=("command in the session",)) if match else NOBODY
    return Marker(who, resets=True, title=command[:500])


def who_by_title(title: str) -> Who:
    """What a heading says: `actor rank 3`, `rollout rank 0`, `engine 1`, `on node-2`.

    What stands below `workers of rank 3` is of other processes than rank 3, and what stands
    below a map of ranks to pids is of none of them.
    """
    if _CHILDREN.search(title) or _MAP.search(title):
        return NOBODY
    rank, engine = _TITLE_RANK.search(title), _TITLE_ENGINE.search(title)
    local = _TITLE_LOCAL_RANK.search(title)
    pid, host = _TITLE_PID.search(title), _TITLE_HOST.search(title)
    if not (rank or local or engine or pid or host):
        return NOBODY
    is_engine = bool(rank and (rank["part"] or "").lower() in _ENGINE_PARTS)
    is_trainer = bool(rank or local)
    role: Role | None = "engine" if is_engine or engine else "trainer" if is_trainer else None
    return Who(
        pid=int(pid["pid"]) if pid else None,
        rank=int(rank["rank"]) if rank and not is_engine else None,
        local_rank=int(local["rank"]) if local else None,
        engine=int(rank["rank"])
        if rank and is_engine
        else int(engine["engine"])
        if engine
        else None,
        host=host["host"] if host else "",
        role=role,
        by=(f"heading {title[:60]}",),
    )
