"""What a diagnosis says: verdict, findings, and the words they are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

State = Literal["hung", "slow", "crashed", "healthy", "unknown"]
"""`hung`: nothing moves. `slow`: progress is being made. `crashed`: a process died or an error
came first, and the wait is a consequence. `healthy`: nothing is wrong. `unknown`: the evidence
does not tell."""

Confidence = Literal["confirmed", "likely", "possible"]
"""`confirmed`: the evidence shows the mechanism itself. `likely`: place and configuration agree,
the mechanism was not observed. `possible`: configuration or log alone."""

CauseClass = Literal[
    "paused_memory_read",
    "missing_backup",
    "rank_subset_collective",
    "collective_mismatch",
    "engine_rpc_stuck",
    "engine_dead",
    "group_rendezvous",
    "network_interface",
    "nccl_transport",
    "oom_or_killed",
    "slow_not_hung",
    "lock_deadlock",
    "gil_held",
    "version_mismatch",
    "config_invalid",
    "storage_slow",
    "other",
]


@dataclass(frozen=True)
class Culprit:
    """A process that holds the others up.

    Attributes:
        process: Its `Process.key`.
        where: The innermost place that tells: `phase, function (file:line)`.
        why: One sentence: how one sees that it is this one.
        rank: Global trainer rank, `None` for others.
        engine: Index of the rollout engine, `None` for others.
        pid: Process id, `None` where unknown.
        host: Host name, "" where unknown.
    """

    process: str
    where: str
    why: str
    rank: int | None = None
    engine: int | None = None
    pid: int | None = None
    host: str = ""


@dataclass(frozen=True)
class Group:
    """Processes that do the same thing: one equivalence class.

    Attributes:
        processes: Their keys, in the order of the evidence, at least one.
        ranks: The trainer ranks among them, ascending.
        doing: What they do, one phrase: `waiting in barrier (gloo group)`.
        where: Place of the wait: `phase, function (file:line)`.
        moving: Whether two samples differ; `None` with one sample.
    """

    processes: tuple[str, ...]
    ranks: tuple[int, ...]
    doing: str
    where: str = ""
    moving: bool | None = None


@dataclass(frozen=True)
class Verdict:
    """Who holds whom up.

    Attributes:
        state: See `State`.
        reason: One or two sentences: why this state.
        culprits: Those at the end of every chain of waits. Empty where nobody can be named.
        groups: All processes of the job, each in one group; the culprits' group first.
        chain: The waits from the majority to the culprit: `ranks 0-2, 4 wait in barrier
            for rank 3`, `rank 3 waits for engine 1`, …
        unaccounted: Trainer ranks of which nothing at all is known, ascending.
        progress: For `slow`: how fast, and the estimated end. "" otherwise.
    """

    state: State
    reason: str
    culprits: tuple[Culprit, ...] = ()
    groups: tuple[Group, ...] = ()
    chain: tuple[str, ...] = ()
    unaccounted: tuple[int, ...] = ()
    progress: str = ""


@dataclass(frozen=True)
class Finding:
    """What one rule says of the evidence.

    Attributes:
        rule: Name of the rule, with dashes: `missing-backup-lora-colocate`.
        cause_class: Its class.
        confidence: See `Confidence`.
        summary: One sentence with the facts of this incident filled in.
        supports: The observations that speak for it, each with where it was seen.
        refutes: The observations that speak against it, likewise.
        remedy: What to do, the rule's "What to do" unless the facts make it more concrete.
        source: The public report.
        culprits: Keys of the processes that it explains; empty = those of the verdict.
    """

    rule: str
    cause_class: CauseClass
    confidence: Confidence
    summary: str
    supports: tuple[str, ...] = ()
    refutes: tuple[str, ...] = ()
    remedy: str = ""
    source: str = ""
    culprits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refutation:
    """A rule that looked likely and was ruled out.

    Attributes:
        rule: Name of the rule, with dashes.
        cause_class: Its class.
        because: The observation that rules it out.
    """

    rule: str
    cause_class: CauseClass
    because: str


@dataclass(frozen=True)
class Diagnosis:
    """The answer: verdict, causes in order of precedence, what was ruled out, what to collect.

    Attributes:
        verdict: Who.
        causes: Why, strongest first. Empty where no rule matched.
        refuted: What it is not, and why not.
        collect_next: Commands or files that would settle what is open, each complete.
    """

    verdict: Verdict
    causes: tuple[Finding, ...] = ()
    refuted: tuple[Refutation, ...] = ()
    collect_next: tuple[str, ...] = field(default=())
