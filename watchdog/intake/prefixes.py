"""What stands before the message of a log line, and what it tells of who wrote it.

Launchers, loggers and containers each put something in front, in any combination:
`(Actor pid=1, ip=…)`, `[default3]:`, `[rank3]:`, `[2026-07-31 10:24:02 TP0]`, `INFO 06-05 16:40:02
[core.py:93]`, `2026-03-24 09:13:55.020 | INFO | module:function:12 -`. One after the other is
taken off, and what it says is kept.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from watchdog.discovery.titles import actor_index, parallel_ranks, role_by_process_name
from watchdog.intake.parts import NOBODY, Who
from watchdog.intake.times import Moment, find_moment

MAX_PREFIXES = 8


@dataclass(frozen=True)
class Line:
    """A log line taken apart.

    Attributes:
        text: The message, indentation kept.
        who: What its prefixes say on the process.
        moment: Its time.
        level: `INFO`, `ERROR` …, "" where unknown.
        repeated: How many more lines Ray folded into this one.
        source: Prefix that names the stream, for telling interleaved streams apart.
    """

    text: str
    who: Who = NOBODY
    moment: Moment | None = None
    level: str = ""
    repeated: int = 0
    source: str = ""


_Step = Callable[[str], tuple[int, Line] | None]
_LEVELS = r"DEBUG|INFO|SUCCESS|WARNING|WARN|ERROR|CRITICAL|FATAL|TRACE"
_ACTOR = re.compile(
    r"\((?P<name>[A-Za-z_][\w.:\-]{0,80})(?P<rank> rank=\d+)?(?: pid=(?P<pid>\d{1,9}))?"
    r"(?:, ip=(?P<ip>[\w.:\-]{1,60}))?\) ?"
)
_POD = re.compile(r"\[pod/(?P<pod>[\w.\-]{1,253})/[\w.\-]{1,80}\] ?")
_TORCHRUN = re.compile(r"\[(?:default|trainer|worker|actor|rank_?local)_?(\d{1,5})\]: ?")
_RANK = re.compile(r"\[(?:global[_ -]?)?rank[ :_=-]{0,2}(\d{1,6})\](?::| -)? ?", re.IGNORECASE)
_RANK_COLON = re.compile(r"[Rr]ank[ _]?(\d{1,6}): (?!pid\b)")
_MPI = re.compile(r"\[\d{1,4},(\d{1,6})\]<std(?:out|err)>: ?")
_NAME_TAG = re.compile(r"\[[A-Za-z][\w.\-]{1,40}\](?= ?\[)")
_SLURM = re.compile(r" {0,4}(\d{1,5}): ")  # srun pads the label to the width of the largest
_CONTAINER = re.compile(
    r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)(?: (?:stdout|stderr) [FP])? "
)
_BRACKETED = re.compile(
    r"\[(?P<time>[^\[\]]{0,3}\d{2,8}[^\[\]]{4,40}?)"
    r"(?P<tag>(?: (?:[A-Z] \d+ \d+|DP\d+|PP\d+|TP\d+|EP\d+|[a-z_]\w*))*)\] ?"
)
_LEVEL_FIRST = re.compile(rf"(?P<level>{_LEVELS})[: ] *(?=\d\d-\d\d |20\d\d-\d\d-\d\d )")
_LEVEL = re.compile(rf"\[?(?P<level>{_LEVELS})(?:\]|\b)(?:: {{0,9}}| {{0,8}}[|-] ?| {{1,8}})")
_PIPE_LEVEL = re.compile(rf" *\| *(?P<level>{_LEVELS}) *\| ")
_WHERE = re.compile(r"(?:\[[\w./\-]{1,80}:\d+\]|[\w./\-]{1,160}\.(?:py|cc|cpp):\d+ -) ?")
_MODULE = re.compile(r"[\w.]{1,120}:[\w<>.]{1,80}:\d+ - ")
_NCCL = re.compile(
    r"(?P<host>[\w.\-]{1,64}):(?P<pid>\d{1,9}):\d{1,9} \[\d+\] ?"
    r"(?:[\w/.\-]{1,80}\.(?:cc|c|cpp|h):\d{1,6} )?(?=NCCL)"
)
_GLOG = re.compile(r"\[?(?P<level>[IWEF])\d{3,4} \d\d:\d\d:\d\d\.\d+ .{0,40}?[\w.]{1,60}:\d+\] ?")
_GLOG_LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL"}
_DASHES = re.compile(rf"- (?P<level>{_LEVELS}) - (?:[\w.]{{1,160}} - )?")
_UNLABELLED = re.compile(r"\+ |[$#] |srun: |slurmstepd: |Submitted batch job ")
_SLURM_SHARE = 0.8
_REPEATED = re.compile(r" \[repeated (\d+)x across cluster\](?: \(.{0,300}\))?$")
_TAG_RANK = re.compile(r"rank_?(\d{1,6})$")
_TAG_INSIDE = re.compile(r"(DP|PP|TP|EP)(\d{1,4})")
_MESSAGE_RANK = re.compile(r"\[[Rr]ank (\d{1,6})\]")


class PrefixReader:
    """Takes prefixes off the lines of one file.

    Args:
        slurm: Whether a number and a colon at the beginning of a line are srun's task label.
    """

    def __init__(self, slurm: bool = False) -> None:
        self._by_digit: tuple[_Step, ...] = (_container, _time, _nccl)
        self._slurm = slurm
        if slurm:
            self._by_digit = (_slurm, *self._by_digit)

    def read(self, text: str) -> Line:
        """Take one clean line apart."""
        line = Line(text)
        if self._slurm and _SLURM.match(text):
            text = text.lstrip(" ")
            line = Line(text)
        if text[:1] in " \t":
            # Indented: a frame, a continuation, a table. Nothing that a logger wrote.
            return line
        match = _REPEATED.search(text) if text.endswith(("cluster]", ")")) else None
        if match:
            line = Line(text[: match.start()], repeated=int(match.group(1)))
        for _ in range(MAX_PREFIXES):
            step = self._step(line)
            if step is None:
                break
            line = step
        message = _MESSAGE_RANK.match(line.text) or _MESSAGE_RANK.search(line.text[:200])
        if message and line.who.rank is None:
            who = Who(rank=int(message.group(1)), by=("rank in the message",))
            line = replace(line, who=line.who.or_else(who))
        return line

    def _step(self, line: Line) -> Line | None:
        if not line.text or line.text[0] in " \t":
            return self._inner(line)
        first = line.text[0]
        steps = self._by_digit if first.isdigit() else _STEPS.get(first, _BY_LETTER)
        for step in steps:
            found = step(line.text)
            if found is not None:
                return _joined(line, *found)
        return None

    def _inner(self, line: Line) -> Line | None:
        """The level behind a time, which loggers pad with spaces."""
        if not line.moment or line.level:
            return None
        found = _pipe_level(line.text)
        if found is not None:
            return _joined(line, *found)
        message = line.text.lstrip()
        found = _level(message)
        skip = len(line.text) - len(message)
        return _joined(line, skip + found[0], found[1]) if found else None


def has_slurm_labels(lines: list[str]) -> bool:
    """Whether nearly all of the first lines of a file begin with srun's task label.

    What the shell and the scheduler say themselves has none.
    """
    sample = [line for line in lines[:200] if line.strip() and not _UNLABELLED.match(line)]
    labelled = sum(bool(_SLURM.match(line)) for line in sample)
    return len(sample) >= 3 and labelled >= _SLURM_SHARE * len(sample)


def _joined(line: Line, end: int, found: Line) -> Line:
    return Line(
        text=line.text[end:],
        who=line.who.or_else(found.who),
        moment=line.moment or found.moment,
        level=line.level or found.level,
        repeated=line.repeated,
        source=f"{line.source}{found.source}",
    )


def _actor(text: str) -> tuple[int, Line] | None:
    if not text.startswith("("):
        return None
    match = _ACTOR.match(text)
    if not match or not (match["pid"] or match["ip"] or match["name"] in ("raylet", "autoscaler")):
        return None
    name = match["name"]
    who = replace(
        who_by_process_name(name),
        pid=int(match["pid"]) if match["pid"] else None,
        host=match["ip"] or "",
        actor=name,
        by=(f"log prefix ({name})",),
    )
    return match.end(), Line("", who=who, source=match.group(0).strip())


def _torchrun(text: str) -> tuple[int, Line] | None:
    match = _TORCHRUN.match(text)
    if not match:
        return None
    who = Who(local_rank=int(match[1]), by=(f"log prefix {match[0].strip()}",))
    return match.end(), Line("", who=who, source=match[0].strip())


def _pod(text: str) -> tuple[int, Line] | None:
    match = _POD.match(text)
    if not match:
        return None
    who = Who(host=match["pod"], by=(f"pod {match['pod']}",))
    return match.end(), Line("", who=who, source=match[0].strip())


def _rank(text: str) -> tuple[int, Line] | None:
    match = _RANK.match(text) or _MPI.match(text) or _RANK_COLON.match(text)
    if not match:
        return None
    who = Who(rank=int(match[1]), by=(f"log prefix {match[0].strip()}",))
    return match.end(), Line("", who=who, source=match[0].strip())


def _name_tag(text: str) -> tuple[int, Line] | None:
    """The program's name in brackets of its own, before others: `[Trainer][RANK 3][time]`."""
    match = _NAME_TAG.match(text)
    return (match.end(), Line("")) if match else None


def _slurm(text: str) -> tuple[int, Line] | None:
    match = _SLURM.match(text)
    if not match:
        return None
    who = Who(local_rank=int(match[1]), by=(f"srun label {match[1]}:",))
    return match.end(), Line("", who=who, source=match[0].strip())


def _container(text: str) -> tuple[int, Line] | None:
    match = _CONTAINER.match(text)
    found = find_moment(match[0], anchored=True) if match else None
    return (match.end(), Line("", moment=found[0])) if match and found else None


def _bracketed(text: str) -> tuple[int, Line] | None:
    if not text.startswith("["):
        return None
    match = _BRACKETED.match(text)
    found = find_moment(match["time"]) if match else None
    if not match or not found:
        return None
    return match.end(), Line("", who=_who_by_tag(match["tag"]), moment=found[0])


def _who_by_tag(tag: str) -> Who:
    rank = _TAG_RANK.search(tag)
    if rank:
        return Who(rank=int(rank[1]), role="trainer", by=(f"log tag {tag.strip()}",))
    inside = {part: int(number) for part, number in _TAG_INSIDE.findall(tag)}
    if not inside:
        return NOBODY
    return Who(
        worker=inside.get("TP"),
        replica=inside.get("DP"),
        role="engine_worker",
        by=(f"log tag {tag.strip()}",),
    )


def _glog(text: str) -> tuple[int, Line] | None:
    match = _GLOG.match(text)
    found = find_moment(match[0]) if match else None
    if not match or not found:
        return None
    return match.end(), Line("", moment=found[0], level=_GLOG_LEVELS[match["level"]])


def _dashes(text: str) -> tuple[int, Line] | None:
    match = _DASHES.match(text)
    return (match.end(), Line("", level=match["level"])) if match else None


def _nccl(text: str) -> tuple[int, Line] | None:
    match = _NCCL.match(text)
    if not match:
        return None
    who = Who(pid=int(match["pid"]), host=match["host"], by=("NCCL's own prefix",))
    return match.end(), Line("", who=who, source=f"{match['host']}:{match['pid']}")


def _level_first(text: str) -> tuple[int, Line] | None:
    match = _LEVEL_FIRST.match(text)
    return (match.end(), Line("", level=match["level"])) if match else None


def _time(text: str) -> tuple[int, Line] | None:
    if not text[0].isdigit():
        return None
    found = find_moment(text, anchored=True)
    if not found:
        return None
    moment, end = found
    rest = text[end:]
    skip = 1 if rest[:1] in (" ", ",") else 0
    return end + skip, Line("", moment=moment)


def _level(text: str) -> tuple[int, Line] | None:
    match = _LEVEL.match(text)
    return (match.end(), Line("", level=match["level"])) if match else None


def _pipe_level(text: str) -> tuple[int, Line] | None:
    match = _PIPE_LEVEL.match(text)
    return (match.end(), Line("", level=match["level"])) if match else None


def _where(text: str) -> tuple[int, Line] | None:
    match = _WHERE.match(text) or _MODULE.match(text)
    return (match.end(), Line("")) if match else None


_BY_LETTER: tuple[_Step, ...] = (_glog, _level_first, _nccl, _level, _rank, _where)
_STEPS: dict[str, tuple[_Step, ...]] = {
    "(": (_actor,),
    "[": (_torchrun, _rank, _pod, _bracketed, _glog, _level, _where, _name_tag),
    "-": (_dashes,),
    "|": (_pipe_level,),
    "/": (_where,),
}
# Of the environment that people print beside a command, of launchers' options (`--local_rank`).
_RANK_OPTION = re.compile(
    r"(?<![\w-])(?:RANK=|OMPI_COMM_WORLD_RANK=|SLURM_PROCID=|PMI_RANK=|--rank[ =])(\d{1,6})\b"
)
_LOCAL_RANK_OPTION = re.compile(
    r"(?<![\w-])(?:LOCAL_RANK=|SLURM_LOCALID=|--local[_-]rank[ =])(\d{1,5})\b"
)
_ROLE_OPTION = re.compile(r"--role[ =](trainer|actor|engine|rollout|driver)\b")


@functools.lru_cache(maxsize=4096)
def who_by_process_name(name: str) -> Who:
    """Role and indices that a process title or command line carries.

    Knows `sglang::scheduler_DP0_TP3`, `VLLM::Worker_DP0_TP1_EP1`, `VLLM::EngineCore_DP1`,
    `ray::lm_policy-0:Class.method` and the classes that the frameworks use for each part.
    """
    role = role_by_process_name(name)
    option = _ROLE_OPTION.search(name)
    if option and role is None:
        role = {"trainer": "trainer", "actor": "trainer", "driver": "driver"}.get(  # type: ignore[assignment]
            option[1], "engine"
        )
    inside = parallel_ranks(name)
    who = Who(role=role, worker=inside.get("TP"), replica=inside.get("DP"))
    if role in (None, "trainer"):
        who = _with_ranks_of(name, who)
    if role == "engine_worker" and who.worker is None and name.endswith("scheduler"):
        who = replace(who, worker=0)
    index = actor_index(name)
    if index is not None and role == "trainer":
        who = replace(who, rank=index)
    elif index is not None and role == "engine":
        who = replace(who, engine=index)
    return who


def _with_ranks_of(command: str, who: Who) -> Who:
    """The ranks that a command line gives its process, or a remark beside it."""
    own, local = _RANK_OPTION.search(command), _LOCAL_RANK_OPTION.search(command)
    if own is None and local is None:
        return who
    found = own or local
    return replace(
        who,
        rank=int(own[1]) if own else None,
        local_rank=int(local[1]) if local else None,
        by=(f"{found[0]} beside its command",) if found else (),
    )
