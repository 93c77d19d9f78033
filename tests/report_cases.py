"""Incidents for the tests of reports and command line, written by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from watchdog.evidence import (
    ActivitySample,
    Evidence,
    Flag,
    Frame,
    Gap,
    LogEvent,
    Mark,
    MemoryRegion,
    Position,
    Process,
    StackSample,
    Stall,
    ThreadActivity,
    ThreadStack,
)
from watchdog.findings import Culprit, Diagnosis, Finding, Group, Refutation, Verdict
from watchdog.reports import IncidentInfo

INCIDENT = IncidentInfo(
    id="weight_sync-2-7f3a",
    run="run-1",
    folder="/runs/run-1/incidents/weight_sync-2-7f3a",
    started_at_s=1_764_500_000.0,
)


@dataclass(frozen=True)
class Case:
    name: str
    evidence: Evidence
    diagnosis: Diagnosis
    incident: IncidentInfo | None = INCIDENT

    @property
    def told(self) -> tuple[Evidence, Diagnosis, IncidentInfo | None]:
        return self.evidence, self.diagnosis, self.incident


READ = (
    Frame("_maybe_get_cpu_backup", "miles/backends/megatron_utils/update_weight/common.py", 61),
    Frame("named_params_and_buffers", "miles/backends/megatron_utils/update_weight/common.py", 88),
    Frame("update_weights", "miles/backends/megatron_utils/actor.py", 214),
)
BARRIER = (
    Frame("barrier", "torch/distributed/distributed_c10d.py", 4811),
    Frame("update_weights", "miles/backends/megatron_utils/actor.py", 221),
)
WHERE = "read_weights, _maybe_get_cpu_backup (common.py:61)"


def stack(frames: tuple[Frame, ...]) -> StackSample:
    idle = ThreadStack("weight-sync-watchdog", (Frame("wait", "threading.py", 331),))
    return StackSample((idle, ThreadStack("MainThread", frames, 101, active=False)), "py-spy")


def trainer(rank: int, frames: tuple[Frame, ...], phase: str) -> Process:
    wchan = "handle_userfault" if frames is READ else "do_epoll_wait"
    return Process(
        key=f"rank {rank}",
        role="trainer",
        rank=rank,
        pid=4000 + rank,
        host="node-a",
        status="running",
        stacks=(stack(frames), stack(frames)),
        activity=(ActivitySample(threads=(ThreadActivity(101, "python", "S", wchan),)),),
        position=Position(
            "weight_sync", 2, 5.3, phase, 5.1, history=(Mark("phase", phase, 5.1, "gloo"),)
        ),
        identified_by="black box",
    )


def native_lora() -> Case:
    memory = MemoryRegion("param_buffer", "paused_without_copy", 1_572_864, 12, ("lora_A.weight",))
    processes = (
        trainer(0, BARRIER, "barrier:exit"),
        trainer(1, BARRIER, "barrier:exit"),
        replace(trainer(2, READ, "read_weights"), memory=(memory,)),
        trainer(3, BARRIER, "barrier:exit"),
    )
    evidence = Evidence(
        origin="watchdog",
        processes=processes,
        world_size=4,
        framework="miles",
        collected_at_s=1_764_500_005.0,
        stall=Stall("weight_sync", 5.3, 5.0, "set", (0, 1, 2, 3)),
        flags=(
            Flag("colocate", True, False, "miles_validate_args"),
            Flag("enable_weights_backuper", False, True, "miles_validate_args"),
        ),
        environment={"MILES_WATCHDOG": "1", "NCCL_DEBUG": "WARN"},
        versions={"torch": "2.13.0"},
        gaps=(
            Gap("engine 0", "it did not answer within 2 s", "curl http://127.0.0.1:30000/health"),
        ),
    )
    waiting = Group(
        ("rank 0", "rank 1", "rank 3"),
        (0, 1, 3),
        "waiting in barrier (gloo)",
        "barrier:exit",
        False,
    )
    verdict = Verdict(
        state="hung",
        reason="Two samples 2.0 s apart are the same on every rank.",
        culprits=(
            Culprit(
                "rank 2",
                WHERE,
                "the only rank that has not reached the barrier",
                2,
                None,
                4002,
                "node-a",
            ),
        ),
        groups=(Group(("rank 2",), (2,), "reading weights", WHERE, False), waiting),
        chain=("ranks 0-1,3 wait in barrier for rank 2",),
    )
    finding = Finding(
        rule="missing-backup-lora-colocate",
        cause_class="missing_backup",
        confidence="confirmed",
        summary="Rank 2 reads 12 tensors of param_buffer, which is paused and has no host copy.",
        supports=("rank 2 stands in _maybe_get_cpu_backup", "param_buffer: paused_without_copy"),
        remedy="Remove --disable-weights-backuper, or keep the trainer resident (no --colocate).",
        source="a public report",
    )
    refuted = (Refutation("slow-not-hung", "slow_not_hung", "no counter moved within 2.0 s"),)
    return Case("native-lora", evidence, Diagnosis(verdict, (finding,), refuted))


def unknown() -> Case:
    processes = (trainer(0, BARRIER, "barrier:exit"), trainer(1, BARRIER, "barrier:exit"))
    groups = (Group(("rank 0", "rank 1"), (0, 1), "waiting in barrier (gloo)"),)
    verdict = Verdict(
        "unknown",
        "Two of 32 ranks are known and both wait; whoever they wait for is not among them.",
        groups=groups,
        unaccounted=tuple(range(2, 32)),
    )
    steps = ("py-spy dump --json --pid PID on each of ranks 2-31", "the log of every rank")
    return Case(
        "unknown",
        Evidence("files", processes, world_size=32),
        Diagnosis(verdict, collect_next=steps),
        None,
    )


def crashed() -> Case:
    dead = Process(
        "engine 1", "engine", engine=1, status="dead", status_detail="killed by signal 9"
    )
    evidence = Evidence(
        "attach",
        (trainer(0, BARRIER, "send_chunk"), dead),
        world_size=1,
        log_events=(LogEvent("oom_kill", "Out of memory: Killed process 77 (sglang)", "dmesg", 9),),
    )
    verdict = Verdict(
        "crashed",
        "Engine 1 was killed before the wait began.",
        (Culprit("engine 1", "process ended", "killed by signal 9", engine=1),),
        (
            Group(("engine 1",), (), "dead"),
            Group(("rank 0",), (0,), "waiting for an answer", "send_chunk", False),
        ),
    )
    cause = Finding("killed-engine", "oom_or_killed", "likely", "The kernel killed engine 1.")
    return Case("crashed", evidence, Diagnosis(verdict, (cause,)))


def slow() -> Case:
    verdict = Verdict(
        "slow",
        "Rank 6 reads a checkpoint; its counters grow.",
        (Culprit("rank 6", "load_checkpoint (ckpt.py:3)", "rchar grows by 21 MiB/s", 6),),
        (Group(("rank 6",), (6,), "reading a file", "load_checkpoint (ckpt.py:3)", True),),
        progress="21 MiB/s, about 14 min left.",
    )
    evidence = Evidence("files", (trainer(6, READ, ""),), world_size=8)
    return Case("slow", evidence, Diagnosis(verdict), None)


NASTY = "\x1b[31m[red]`x`</details> <script>@team ]8;; | **b** \u202e\nsecond ``` line\r\x07"


def hostile() -> Case:
    """Every text field holds markup of each format and terminal escapes."""
    frame = Frame(NASTY, NASTY, 1)
    process = Process(
        "rank 0",
        "trainer",
        0,
        pid=1,
        host=NASTY,
        status_detail=NASTY,
        stacks=(StackSample((ThreadStack(NASTY, (frame,)),), "py-spy", from_file=NASTY),),
        gaps=(Gap(NASTY, NASTY, NASTY),),
    )
    evidence = Evidence(
        "files",
        (process,),
        framework=NASTY,
        log_events=(LogEvent(NASTY, NASTY, NASTY, 1),),
        flags=(Flag(NASTY, NASTY, NASTY, NASTY),),
        environment={NASTY: NASTY},
        versions={NASTY: NASTY},
        notes=(NASTY,),
    )
    verdict = Verdict(
        "hung",
        NASTY,
        (Culprit("rank 0", NASTY, NASTY, 0, host=NASTY),),
        (Group(("rank 0", NASTY), (0,), NASTY, NASTY),),
        (NASTY,),
        progress=NASTY,
    )
    cause = Finding(NASTY, "other", "possible", NASTY, (NASTY,), (NASTY,), NASTY, NASTY)
    refuted = (Refutation(NASTY, "other", NASTY),)
    incident = IncidentInfo(NASTY, NASTY, "/runs/" + NASTY.replace("\n", ""), 1.0)
    return Case("hostile", evidence, Diagnosis(verdict, (cause,), refuted, (NASTY,)), incident)


def huge() -> Case:
    """512 ranks that each do something else, with long stacks, names and lists."""
    long = "very_long_name_of_a_function_" * 12
    frames = tuple(Frame(f"{long}{depth}", "a/long/path/" * 12, depth) for depth in range(120))
    processes = tuple(
        replace(
            trainer(rank, frames, long),
            memory=tuple(MemoryRegion(long, "resident", 1, 1, (long,) * 9) for _ in range(40)),
            gaps=(Gap(f"{long}{rank}", long, long),),
        )
        for rank in range(512)
    )
    names = [process.key for process in processes]
    culprits = tuple(Culprit(name, f"{long} {name}", long, r) for r, name in enumerate(names[:80]))
    groups = tuple(Group((name,), (r,), f"{long}{r}", long) for r, name in enumerate(names))
    causes = tuple(
        Finding(
            f"{long}{i}", "other", "possible", long * 9, (long * 9,) * 60, (long,) * 60, long * 9
        )
        for i in range(60)
    )
    evidence = Evidence(
        "watchdog",
        processes,
        world_size=1024,
        log_events=tuple(LogEvent("traceback", long * 5, long, i) for i in range(3000)),
        flags=tuple(Flag(f"{long}{i}", long * 3, long, long) for i in range(900)),
        environment={f"{long}{i}": long * 9 for i in range(900)},
        notes=(long * 9,) * 300,
    )
    verdict = Verdict(
        "hung", long * 9, culprits, groups, (long * 9,) * 600, (*range(512, 1024, 2),)
    )
    refuted = tuple(Refutation(f"{long}{i}", "other", long * 9) for i in range(200))
    return Case("huge", evidence, Diagnosis(verdict, causes, refuted, (long * 9,) * 200))


CASES = (native_lora(), unknown(), crashed(), slow(), hostile(), huge())
