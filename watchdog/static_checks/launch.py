"""What a run is going to be started with: flags, environment, versions, and the host it is on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from watchdog.evidence import Evidence
from watchdog.situation import Situation
from watchdog.situation.switches import Switches

Confidence = Literal["certain", "likely", "suspect"]
"""`certain`: fails whenever the run comes to that point. `likely`: known to hang in this
configuration, and nothing that prevents it is visible. `suspect`: known to hang in some
configurations like this one and to run in others; `What decides` says what tells them apart."""


@dataclass(frozen=True)
class Host:
    """The facts of the machine that the run would start on.

    Attributes:
        interfaces: Names of network interfaces that are up, neither loopback nor virtual.
        shared_memory_bytes: Size of /dev/shm, `None` where there is none.
        network_folders: Folders of caches, and home, that lie on a network file system, each with
            the type of the file system.
        lock_files: Lock files of compilers that no process holds and that are older than an hour.
        can_trace: Whether this process may trace others (CAP_SYS_PTRACE).
        ephemeral_ports: First and last port that the kernel gives to connections.
        checkout_dates: Framework to the day of its checkout's last commit, `2026-09-08`.
    """

    interfaces: tuple[str, ...] = ()
    shared_memory_bytes: int | None = None
    network_folders: tuple[str, ...] = ()
    lock_files: tuple[str, ...] = ()
    can_trace: bool | None = None
    ephemeral_ports: tuple[int, int] = (32768, 60999)
    checkout_dates: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """One command of the launch.

    Attributes:
        name: What it starts: `train.py`, `vllm serve`.
        is_engine: Whether it is a rollout engine.
        environment: Variables that hold for it.
    """

    name: str
    is_engine: bool
    environment: dict[str, str]


@dataclass(frozen=True)
class Launch:
    """All that is known before the run.

    Attributes:
        evidence: Flags, environment and versions, as `diagnose` would read them.
        programs: The commands, in order; empty where only arguments were given.
        sources: File name to text of the Python programs that are started, as far as they are
            here.
        host: The machine, `None` where the run will be elsewhere.
    """

    evidence: Evidence
    programs: tuple[Program, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    host: Host | None = None

    @cached_property
    def situation(self) -> Situation:
        """The view that rules have."""
        return Situation(self.evidence)

    @property
    def switches(self) -> Switches:
        """Flags, environment and versions, whatever their spelling."""
        return self.situation.switches

    def started(self, *words: str) -> bool:
        """Whether a program's name contains one of the words."""
        return any(word in program.name for program in self.programs for word in words)

    def shown(self, *names: str) -> tuple[str, ...]:
        """Those flags that were given, one phrase each: `--colocate`, `--lora-rank 16`."""
        found = []
        for name in names:
            flag = self.switches.flag(name)
            if flag is not None:
                value = "" if flag.value is True else f" {flag.value}"
                found.append(f"--{flag.name.replace('_', '-')}{value}")
        return tuple(found)

    def variable(self, name: str) -> str:
        """A variable of the run, "" where it is not set."""
        return self.switches.environment(name) or ""

    @property
    def shares_devices(self) -> bool:
        """Whether trainer and engines use the same devices, and so exchange weights by IPC."""
        if self.switches.value("vllm_mode") == "server":
            return False
        return self.switches.on("colocate", "hybrid_engine") or (
            self.switches.value("vllm_mode") == "colocate"
        )

    @property
    def num_nodes(self) -> float:
        """Nodes of the trainer, as the flags say; 1 where they do not."""
        names = ("actor_num_nodes", "nnodes", "num_machines", "cluster.num_nodes")
        return max((self.switches.number(name) or 1 for name in names), default=1)

    @property
    def tunes_lora(self) -> bool:
        """Whether adapters are trained and served as adapters."""
        switches = self.switches
        rank = switches.number("lora_rank") or switches.number("lora_r")
        if switches.on("lora_train_only", "merge_lora"):
            return False
        return bool(rank) or switches.on("lora_adapter_path", "use_lora", "use_peft")


@dataclass(frozen=True)
class Seen:
    """What a check found.

    Attributes:
        confidence: See `Confidence`.
        facts: The flags, variables and versions that it rests on, one phrase each.
        unless: What is not known here and would clear it; "" where the check's own "What
            decides" says all.
    """

    confidence: Confidence
    facts: tuple[str, ...]
    unless: str = ""
