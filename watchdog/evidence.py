"""The one schema: all that was collected about a stall, wherever it came from.

The live watchdog, `attach` and `diagnose` each fill an `Evidence`; verdict, rules and reports
read nothing else. Everything here is plain frozen data. Tuples are ordered oldest first unless
a docstring says otherwise; an empty tuple or `None` means *not collected*, never *none there*
(what could not be collected, and why, is a `Gap`).

Wall-clock times are seconds since the Unix epoch, `None` where the source carries no time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SCHEMA_VERSION = 1

Role = Literal["trainer", "engine", "engine_worker", "driver", "launcher", "other"]
Origin = Literal["watchdog", "attach", "files"]
ProcessStatus = Literal["running", "stopped", "uninterruptible", "zombie", "dead", "unknown"]
NO_ANSWER = "no answer"
"""So begins the `status_detail` of a process of which nobody could be asked."""
Residency = Literal["resident", "backed_up", "paused_without_copy"]


@dataclass(frozen=True)
class Frame:
    """One call of a stack.

    Attributes:
        function: Bare function name, e.g. `update_weights`, or a demangled native symbol.
        file: Path as the source gave it; a shared object's name for native frames.
        line: Line number, 0 where unknown.
        native: Whether it is a C or C++ frame.
        locals: Variable name to its printed value, masked and clipped. Often empty.
    """

    function: str
    file: str = ""
    line: int = 0
    native: bool = False
    locals: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ThreadStack:
    """The stack of one thread.

    Attributes:
        name: Thread name, "" where unknown. The main thread is `MainThread`.
        frames: Innermost call first. May be empty (a thread that Python does not know).
        os_thread_id: Kernel thread id (tid), where the source has it.
        active: Whether it was on a CPU or about to be, as py-spy sees it; `None` = not told.
        owns_gil: Whether it held the GIL; `None` = the source cannot tell.
    """

    name: str
    frames: tuple[Frame, ...]
    os_thread_id: int | None = None
    active: bool | None = None
    owns_gil: bool | None = None


@dataclass(frozen=True)
class StackSample:
    """All stacks of one process at one moment.

    Attributes:
        threads: Main thread first where it is known.
        source: What read them: `py-spy`, `py-spy --native`, `faulthandler`, `gdb`,
            `traceback`, `in-process`.
        taken_at_s: Wall-clock time (s), `None` where unknown.
        from_file: The file it was read from, "" when live.
    """

    threads: tuple[ThreadStack, ...]
    source: str
    taken_at_s: float | None = None
    from_file: str = ""


@dataclass(frozen=True)
class ThreadActivity:
    """What the kernel says of one thread: /proc/<pid>/task/<tid>.

    Attributes:
        tid: Kernel thread id.
        name: `comm`, at most 15 characters.
        state: One letter: R, S, D, T, t, Z, X, I.
        wchan: Kernel function it sleeps in, "" where unknown or none.
        cpu_s: User and system time so far (s), `None` where unknown.
    """

    tid: int
    name: str = ""
    state: str = ""
    wchan: str = ""
    cpu_s: float | None = None


@dataclass(frozen=True)
class ActivitySample:
    """Counters of one process at one moment. Two of them tell hung from slow.

    Attributes:
        taken_at_s: Wall-clock time (s).
        cpu_s: User and system time of the whole process so far (s).
        read_bytes: `rchar` or `read_bytes` of /proc/<pid>/io so far.
        write_bytes: `wchar` or `write_bytes` of /proc/<pid>/io so far.
        rss_bytes: Resident memory.
        num_open_files: Open file descriptors.
        threads: One entry a thread, ascending tid.
    """

    taken_at_s: float | None = None
    cpu_s: float | None = None
    read_bytes: int | None = None
    write_bytes: int | None = None
    rss_bytes: int | None = None
    num_open_files: int | None = None
    threads: tuple[ThreadActivity, ...] = ()


@dataclass(frozen=True)
class Collective:
    """One call of `torch.distributed`, from a black box, a flight recorder or a log line.

    Attributes:
        op: Lower case, as torch names the function: `barrier`, `gather_object`, `new_group` …
        group: Name or description of the process group, "" for the default group.
        group_ranks: Global ranks of the group, ascending; empty where unknown.
        sequence: Number of the collective in its group, counted from 1; `None` if unknown.
        num_bytes: Bytes of this rank's input, `None` where unknown.
        call_site: `file:line function` of the caller, innermost outside torch, or "".
        finished: Whether it had returned.
        waited_s: How long it had been running at the time of the evidence (s).
    """

    op: str
    group: str = ""
    group_ranks: tuple[int, ...] = ()
    sequence: int | None = None
    num_bytes: int | None = None
    call_site: str = ""
    finished: bool = False
    waited_s: float | None = None


@dataclass(frozen=True)
class Mark:
    """One event of a black box's ring.

    Attributes:
        kind: `section`, `phase`, `collective`, `section_end`, `collective_end`, `note`.
        name: Section, phase or op.
        age_s: How long before the evidence it was written (s).
        detail: Group, sequence number or text, for people.
        num_marks: How often it was written: a phase that is marked again is counted.
        last_age_s: The same as `age_s` of the last time, `None` where it was written once.
    """

    kind: str
    name: str
    age_s: float
    detail: str = ""
    num_marks: int = 1
    last_age_s: float | None = None


@dataclass(frozen=True)
class Position:
    """Where a rank is, by its black box.

    Attributes:
        section: Open section (`weight_sync`), or "" when outside of any.
        section_index: How many sections of this name were entered before, this one included.
        section_age_s: Time since it was entered (s).
        phase: Current phase of the section, "" if none was marked.
        phase_age_s: Time since the phase began (s).
        collective: The collective it is in, or the last one it was in.
        heartbeat_age_s: Time since the watchdog thread last ran (s). It grows while the GIL
            is held or the process is stopped, although nothing is wrong with the thread.
        history: The last marks, oldest first.
    """

    section: str = ""
    section_index: int = 0
    section_age_s: float | None = None
    phase: str = ""
    phase_age_s: float | None = None
    collective: Collective | None = None
    heartbeat_age_s: float | None = None
    history: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class MemoryRegion:
    """Pausable memory of one tag in one process, from the ledger.

    Attributes:
        tag: Region tag of the memory saver, e.g. `param_buffer`.
        residency: What a read of it meets.
        num_bytes: Size of the region.
        num_tensors: Tensors known to lie in it.
        tensors: Names of the first few.
    """

    tag: str
    residency: Residency
    num_bytes: int | None = None
    num_tensors: int | None = None
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Socket:
    """One TCP connection or listener, as `ss` or psutil shows it.

    Attributes:
        local: `address:port`.
        remote: `address:port`, "" for a listener.
        state: `ESTABLISHED`, `LISTEN`, `SYN_SENT`, `CLOSE_WAIT` …
        recv_queue_bytes: Received and not read by the process, `None` where unknown.
        send_queue_bytes: Sent and not acknowledged, `None` where unknown.
    """

    local: str
    remote: str = ""
    state: str = ""
    recv_queue_bytes: int | None = None
    send_queue_bytes: int | None = None


@dataclass(frozen=True)
class Gap:
    """Something that was looked for and not had.

    Attributes:
        what: The missing thing, e.g. `native stack of rank 3`.
        why: What stood in the way, in the words of whoever refused.
        remedy: What to do so that it is there next time, a command where there is one.
    """

    what: str
    why: str
    remedy: str = ""


@dataclass(frozen=True)
class Process:
    """One process of the job, alive or not.

    Attributes:
        key: Unique in the evidence and stable between samples: `rank 3`, `engine 1`,
            `engine 1 worker 0`, `driver`, or `host:pid`.
        role: Its part in the job.
        rank: Global trainer rank, trainers only.
        engine: Index of the rollout engine, engines and their workers only.
        worker: Rank inside the engine (tensor parallel), engine workers only.
        pid: Process id on its host.
        host: Host name or address, "" where unknown.
        command: Command line or process title, masked.
        status: As the kernel or a log says.
        status_detail: `killed by signal 9`, `exit status 1`, `stopped (T)`, `out of memory` …
        stacks: Samples, oldest first.
        activity: Samples, oldest first.
        position: From the black box.
        collectives: Last known collectives, oldest first, at most one unfinished a group.
        memory: Regions of pausable memory.
        environment: Relevant variables, masked.
        versions: Package or library to version, where this process differs from the job.
        sockets: Its connections.
        identified_by: How role and rank were inferred, for the report.
        gaps: What could not be had of this process.
    """

    key: str
    role: Role
    rank: int | None = None
    engine: int | None = None
    worker: int | None = None
    pid: int | None = None
    host: str = ""
    command: str = ""
    status: ProcessStatus = "unknown"
    status_detail: str = ""
    stacks: tuple[StackSample, ...] = ()
    activity: tuple[ActivitySample, ...] = ()
    position: Position | None = None
    collectives: tuple[Collective, ...] = ()
    memory: tuple[MemoryRegion, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    sockets: tuple[Socket, ...] = ()
    identified_by: str = ""
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True)
class LogEvent:
    """A line (or traceback) of a log that means something to the diagnosis.

    Attributes:
        kind: Slug of the known line, e.g. `gloo_recv_timeout`, `engine_control`,
            `traceback`, `oom_kill`; the table in `watchdog/intake/log_lines/` lists them.
        text: The line, without colours and prefixes, masked, at most 2000 characters.
        file: Log it stands in, "" when live.
        line: Line number in that file, from 1.
        time_s: Wall-clock time of the line (s), `None` where the log has none.
        rank: Trainer rank that wrote it, where the prefix tells.
        engine: Engine that wrote it, where the prefix or the file tells.
        pid: Process that wrote it.
        host: Its host.
        fields: What was parsed out of it, by name: `op`, `seq`, `timeout_ms`, `exception` …
    """

    kind: str
    text: str
    file: str = ""
    line: int = 0
    time_s: float | None = None
    rank: int | None = None
    engine: int | None = None
    pid: int | None = None
    host: str = ""
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Flag:
    """One argument of the run.

    Attributes:
        name: As on the command line without dashes, `_` for `-`: `offload_train`. Dotted for
            hierarchical configuration: `actor_rollout_ref.rollout.name`.
        value: JSON value, masked where the name is that of a secret.
        default: What it is when nobody sets it, `None` where unknown.
        origin: `miles_validate_args`, or the file and line it was read from.
    """

    name: str
    value: str | int | float | bool | None
    default: str | int | float | bool | None = None
    origin: str = ""


@dataclass(frozen=True)
class Stall:
    """The stall that the watchdog saw; absent for evidence from files.

    Attributes:
        section: The section that is past its deadline.
        waited_s: Time in the section when the evidence was collected (s).
        deadline_s: The limit it passed (s).
        deadline_reason: Where the limit came from: `set`, `auto: four times the longest sync`.
        noticed_by: Ranks whose watchdog noticed it, ascending.
    """

    section: str
    waited_s: float
    deadline_s: float
    deadline_reason: str = ""
    noticed_by: tuple[int, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """One stall of a whole job, as far as it could be seen.

    Attributes:
        origin: Who collected it.
        processes: Trainers by rank, then engines by index, then the rest.
        world_size: Trainer ranks that should take part, `None` where unknown.
        framework: `miles`, `slime`, `verl` …, "" where unknown.
        collected_at_s: When (s).
        stall: The stall that was noticed.
        log_events: By file, then line.
        flags: Arguments of the run, by name. Only those that differ from their default or
            that a rule looks at; all of them when read from a file.
        environment: Variables of the job (launch script, runtime environment), masked.
        versions: Package or library to version.
        gaps: What could not be had at all.
        notes: How things were inferred, for the report; one sentence each.
        schema_version: Version of this schema.
    """

    origin: Origin
    processes: tuple[Process, ...] = ()
    world_size: int | None = None
    framework: str = ""
    collected_at_s: float | None = None
    stall: Stall | None = None
    log_events: tuple[LogEvent, ...] = ()
    flags: tuple[Flag, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()
    schema_version: int = SCHEMA_VERSION
