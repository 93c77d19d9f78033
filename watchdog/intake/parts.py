"""What parsers hand over: pieces of evidence that do not know yet which rank they belong to."""

from __future__ import annotations

import re
from collections.abc import Sized
from dataclasses import dataclass, field, replace

from watchdog.evidence import (
    ActivitySample,
    Collective,
    Evidence,
    Flag,
    Gap,
    ProcessStatus,
    Role,
    Socket,
    StackSample,
)
from watchdog.intake.times import Moment

MAX_PROCESS_PARTS = 20_000
MAX_EVENTS = 50_000
MAX_FLAGS = 5_000
MAX_NOTES = 500


@dataclass(frozen=True)
class Who:
    """Hints on which process something belongs to; every one may be wrong or missing.

    Attributes:
        pid: Process id, on whatever host it was.
        rank: Global trainer rank.
        local_rank: Rank on its node, as torchrun's prefix tells it.
        engine: Index of the rollout engine.
        replica: Data-parallel index inside the engine.
        worker: Tensor-parallel rank inside the engine.
        host: Host name or address.
        role: Part in the job.
        command: Command line or process title.
        actor: Class of the Ray actor, or vLLM's process name, of a log prefix.
        by: How this is known, in a few words each.
    """

    pid: int | None = None
    rank: int | None = None
    local_rank: int | None = None
    engine: int | None = None
    replica: int | None = None
    worker: int | None = None
    host: str = ""
    role: Role | None = None
    command: str = ""
    actor: str = ""
    by: tuple[str, ...] = ()

    def or_else(self, other: Who) -> Who:
        """These hints, with gaps filled from `other`."""
        if other is NOBODY:
            return self
        if self is NOBODY:
            return other
        return Who(
            pid=_first(self.pid, other.pid),
            rank=_first(self.rank, other.rank),
            local_rank=_first(self.local_rank, other.local_rank),
            engine=_first(self.engine, other.engine),
            replica=_first(self.replica, other.replica),
            worker=_first(self.worker, other.worker),
            host=self.host or other.host,
            role=self.role or other.role,
            command=self.command or other.command,
            actor=self.actor or other.actor,
            by=tuple(dict.fromkeys((*self.by, *other.by))),
        )


def _first(one: int | None, other: int | None) -> int | None:
    return one if one is not None else other


NOBODY = Who()


@dataclass(frozen=True)
class ProcessPart:
    """Something that was seen of one process.

    Attributes:
        who: Whose it is.
        file_who: What the name of the file says; applies only if the file speaks of one process.
        file: The file it stands in.
        moment: When it was taken, as far as file name, heading or text tell.
        order: Position among parts without a time: later is larger.
        stack: Stacks at that moment.
        activity: Counters at that moment.
        status: As the kernel or a table says.
        status_detail: See `Process`.
        environment: Its variables.
        versions: Libraries it maps or reports.
        sockets: Its connections.
        collectives: Its collectives, oldest first.
        gap: What could not be had of it.
    """

    who: Who
    file_who: Who = NOBODY
    file: str = ""
    moment: Moment | None = None
    order: float = 0.0
    stack: StackSample | None = None
    activity: ActivitySample | None = None
    status: ProcessStatus = "unknown"
    status_detail: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    sockets: tuple[Socket, ...] = ()
    collectives: tuple[Collective, ...] = ()
    gap: Gap | None = None


@dataclass(frozen=True)
class RawEvent:
    """A log event before ranks and dates are known; see `LogEvent` for the fields."""

    kind: str
    text: str
    file: str
    line: int
    moment: Moment | None = None
    who: Who = NOBODY
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """One process table.

    Attributes:
        file: The file it stands in.
        header: Its first line: tables with the same one were asked for alike.
        order: See `ProcessPart`.
        processes: Its members of the job by pid.
    """

    file: str
    header: str
    order: float
    processes: dict[int, Who]


@dataclass
class Parts:
    """All that was read so far, bounded: what does not fit is counted in a gap."""

    processes: list[ProcessPart] = field(default_factory=list)
    events: list[RawEvent] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    own_reports: list[str] = field(default_factory=list)
    identities: list[Who] = field(default_factory=list)
    listings: list[Listing] = field(default_factory=list)
    dates: list[tuple[str, Moment]] = field(default_factory=list)
    world_sizes: list[tuple[int, str]] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    def add_process(self, part: ProcessPart) -> None:
        """Keep a part of a process."""
        if self._fits("parts of processes", len(self.processes), MAX_PROCESS_PARTS):
            self.processes.append(part)

    def add_event(self, event: RawEvent) -> None:
        """Keep a log event."""
        if self._fits("log events", len(self.events), MAX_EVENTS):
            self.events.append(event)

    def add_flag(self, flag: Flag) -> None:
        """Keep an argument of the run."""
        if self._fits("flags", len(self.flags), MAX_FLAGS):
            self.flags.append(flag)

    def add_variables(self, variables: dict[str, str]) -> None:
        """Keep variables of the job; the first value of each wins."""
        for name, value in variables.items():
            if self._fits("variables", len(self.environment), MAX_FLAGS):
                self.environment.setdefault(name, value[:2000])

    def add_versions(self, versions: dict[str, str]) -> None:
        """Keep versions of packages; the first of each wins."""
        for name, value in versions.items():
            if self._fits("versions", len(self.versions), MAX_FLAGS):
                self.versions.setdefault(name, value[:200])

    def add_identity(self, who: Who) -> None:
        """Keep what ties a pid to a rank, an engine or a name."""
        if self._fits("identities", len(self.identities), MAX_PROCESS_PARTS):
            self.identities.append(who)

    def add_note(self, note: str) -> None:
        """Keep a sentence on how something was inferred, once."""
        if note not in self.notes and self._fits("notes", len(self.notes), MAX_NOTES):
            self.notes.append(note)

    def add_gap(self, what: str, why: str, remedy: str = "") -> None:
        """Keep what could not be read, and why."""
        if self._fits("gaps", len(self.gaps), MAX_NOTES):
            self.gaps.append(Gap(what=what, why=why, remedy=remedy))

    def absorb(self, other: Parts) -> None:
        """Add all that other parts hold."""
        for part in other.processes:
            self.add_process(part)
        for event in other.events:
            self.add_event(event)
        for flag in other.flags:
            self.add_flag(flag)
        for who in other.identities:
            self.add_identity(who)
        self.listings += other.listings
        self.dates += other.dates
        for note in other.notes:
            self.add_note(note)
        self.add_variables(other.environment)
        self.add_versions(other.versions)
        self.gaps += other.gaps[: MAX_NOTES - len(self.gaps)]
        self.evidence += other.evidence
        self.own_reports += other.own_reports
        self.world_sizes += other.world_sizes
        for what, num in other.dropped.items():
            self.dropped[what] = self.dropped.get(what, 0) + num

    def extent(self) -> tuple[int, int]:
        """How much there is so far: of all but log events, and of these."""
        others: tuple[Sized, ...] = (
            self.processes, self.flags, self.environment, self.versions, self.evidence,
            self.own_reports, self.gaps, self.notes, self.dropped,
        )  # fmt: skip
        return sum(len(each) for each in others), len(self.events)

    def leave_what_nobody_knows(self, before: tuple[int, int]) -> bool:
        """Drop the last lines of a file of which nothing else was understood.

        Args:
            before: The extent before the file was read.

        Returns:
            Whether there were any, and nothing else.
        """
        num_others, num_events = before
        new = self.events[num_events:]
        is_known = any(e.kind != "last_line" or e.moment or e.who != NOBODY for e in new)
        if not new or is_known or self.extent()[0] != num_others:
            return False
        del self.events[num_events:]
        return True

    @property
    def usable(self) -> bool:
        """Whether anything at all was understood; a last line without a time is not enough."""
        return bool(
            self.processes
            or any(event.kind != "last_line" or event.moment for event in self.events)
            or self.flags
            or self.environment
            or self.versions
            or self.evidence
        )

    def _fits(self, what: str, num: int, limit: int) -> bool:
        if num < limit:
            return True
        self.dropped[what] = self.dropped.get(what, 0) + 1
        return False


_WORD_NUMBER = r"[ _.-]?(\d{1,5})(?!\d)"
_DUMPS = r"(?:stacks?|dump|py-?spy|pystack|trace|faulthandler|gdb|bt)"
_FILE_HINTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    # `r3.txt`, `stack_r3.txt`, `fr_3.json`, `r3-pyspy.txt`; a model's `r1-32b.log` is none.
    ("rank", re.compile(rf"^(?:{_DUMPS}[_.-])?(?:r|fr)[_-]?(\d{{1,5}})(?=[._]|$)", re.I)),
    ("rank", re.compile(rf"^r(\d{{1,5}})-(?={_DUMPS})", re.I)),
    ("rank", re.compile(rf"(?<![a-z])(?:rank|trainer|policy|actor){_WORD_NUMBER}", re.I)),
    ("engine", re.compile(rf"(?<![a-z])(?:engine|server|replica|inference){_WORD_NUMBER}", re.I)),
    ("worker", re.compile(rf"(?<![a-z])tp{_WORD_NUMBER}", re.I)),
    ("replica", re.compile(rf"(?<![a-z])dp{_WORD_NUMBER}", re.I)),
    ("pid", re.compile(r"(?:pid|actor|_)[_.-]?(\d{3,7})(?=\.[a-z]+$|$)", re.I)),
)
_ROLE_WORDS: tuple[tuple[str, Role], ...] = (
    ("driver", "driver"),
    ("orchestrator", "driver"),
    ("engine", "engine"),
    ("vllm", "engine"),
    ("sglang", "engine"),
    ("inference", "engine"),
    ("trainer", "trainer"),
    ("policy", "trainer"),
    ("rank", "trainer"),
)


def who_by_file_name(name: str) -> Who:
    """What the last part of a path says on its content: `rank13.txt`, `engine2.log`.

    Returns:
        Hints; `rank` from words like rank, trainer, policy; `NOBODY` if it says nothing.
    """
    base = name.rsplit("/", 1)[-1].rsplit("!", 1)[-1]
    found: dict[str, int] = {}
    for attribute, pattern in _FILE_HINTS:
        match = pattern.search(base)
        if match and not (attribute == "pid" and _looks_like_date(base, match.start(1))):
            found[attribute] = int(match.group(1))
    for attribute in ("rank", "engine"):
        if found.get(attribute) == found.get("pid"):
            found.pop(attribute, None)
    lower = base.lower()
    if "engine_of_rank" in lower or re.search(r"engine[_-]?core", lower):
        found.pop("engine", None)
    role: Role | None = next((role for word, role in _ROLE_WORDS if word in lower), None)
    if not found and role is None:
        return NOBODY
    who = Who(role=role, by=(f"file name {base}",))
    return replace(who, **found)  # type: ignore[arg-type]


def _looks_like_date(base: str, start: int) -> bool:
    around = base[max(0, start - 11) : start + 8]
    return bool(re.search(r"20\d\d[-_]?\d\d[-_]?\d\d|t\d_\d{4}", around))
