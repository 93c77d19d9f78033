"""Signs in flags, environment and versions, for rules."""

from __future__ import annotations

import re

from watchdog.evidence import Process
from watchdog.situation import Situation

TRANSPORT_VARIABLES = (
    "NCCL_CUMEM_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_SHM_DISABLE",
    "NCCL_NET",
    "NCCL_SOCKET_IFNAME",
    "NCCL_IB_DISABLE",
    "NCCL_NVLS_ENABLE",
    "NCCL_MNNVL_ENABLE",
)
"""Variables that both ends of one communicator must share."""


_CHANNEL = re.compile(
    r"Channel [\d/]+ : (?P<source>\d+\[\w+\]) -> (?P<target>\d+\[\w+\]) via (?P<path>\w+)"
)


def version_tuple(text: str) -> tuple[int, ...]:
    """`2.28.9+cuda13` as (2, 28, 9); what is no number ends it."""
    numbers: list[int] = []
    for part in text.split("+")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def nccl_versions(situation: Situation) -> dict[str, set[str]]:
    """NCCL versions of trainers, engines and the installed packages, by where they were seen."""
    found: dict[str, set[str]] = {}
    for event in situation.log(r"NCCL version \d|using nccl==\d"):
        version = event.fields.get("version", "")
        side = (
            "engine"
            if event.engine is not None
            else "trainer"
            if _is_trainer(situation, event.pid, event.rank)
            else ""
        )
        if version and side:
            found.setdefault(side, set()).add(version)
    for process in situation.evidence.processes:
        for name, version in process.versions.items():
            if "nccl" in name.lower():
                side = "engine" if process.role in ("engine", "engine_worker") else process.role
                found.setdefault(side, set()).add(version)
    for name, versions in situation.switches.versions_like(r"^nvidia-nccl|^nccl$").items():
        found.setdefault(f"package {name}", set()).update(versions)
    return found


def _is_trainer(situation: Situation, pid: int | None, rank: int | None) -> bool:
    if rank is not None:
        return True
    return any(
        p.pid == pid and p.role == "trainer"
        for p in situation.evidence.processes
        if pid is not None
    )


def differing_variables(situation: Situation) -> list[str]:
    """Transport variables that trainers and engines set differently, one phrase each."""
    found = []
    for name in TRANSPORT_VARIABLES:
        ends = {
            _values(situation, situation.trainers, name),
            _values(situation, situation.engines, name),
        }
        if frozenset() not in ends and len(ends) == 2:
            trainer, engine = (
                _values(situation, situation.trainers, name),
                _values(situation, situation.engines, name),
            )
            found.append(
                f"{name} is {_words(trainer)} in the trainers and {_words(engine)} in the engines"
            )
    return found


def differing_paths(situation: Situation) -> list[str]:
    """Pairs of ranks that a trainer and an engine connect by different paths, one phrase each."""
    paths: dict[str, dict[frozenset[str], set[str]]] = {"trainer": {}, "engine": {}}
    roles = {p.pid: p.role for p in situation.evidence.processes if p.pid is not None}
    for event in situation.evidence.log_events:
        found = _CHANNEL.search(event.fields.get("detail", ""))
        role = roles.get(event.pid, "other") if event.pid is not None else "other"
        side = "engine" if role == "engine_worker" else role
        if event.kind == "nccl_transport" and found and side in paths:
            pair = frozenset((found["source"], found["target"]))
            paths[side].setdefault(pair, set()).add(found["path"])
    differing = []
    for pair, own in paths["trainer"].items():
        other = paths["engine"].get(pair, set())
        if len(own) == 1 and len(other) == 1 and own != other:
            ends = " and ".join(sorted(pair))
            differing.append(f"{ends} by {min(own)} in the trainer, by {min(other)} in the engine")
    return differing


def _values(situation: Situation, processes: tuple[Process, ...], name: str) -> frozenset[str]:
    return frozenset(p.environment.get(name, "unset") for p in processes if p.environment)


def _words(values: frozenset[str]) -> str:
    return " or ".join(sorted(values))


def expandable_segments(situation: Situation) -> str:
    """The allocator setting that makes IPC handles need `pidfd_getfd`, "" where it is not on."""
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        value = situation.switches.environment(name) or ""
        if "expandable_segments:true" in value.lower().replace(" ", ""):
            return f"{name}={value}"
    return ""


def is_no_interface_name(value: str) -> bool:
    """Whether gloo cannot take this for the name of an interface: an exclusion or a list."""
    return "^" in value or "," in value
