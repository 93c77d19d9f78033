"""Who this process is in the job, and by what name the job goes on every rank.

Nothing here is imported from torch or Ray; what is already imported is asked.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# Set by the first process that knows, so that its children use the same folder.
RUN_VARIABLE = "MILES_WATCHDOG_RUN"
# `<rank>:<pid>` of the trainer that a child descends from: RANK is inherited, being it is not.
OWNER_VARIABLE = "MILES_WATCHDOG_OWNER"

_RANK_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_WORLD_VARIABLES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LOCAL_RANK_VARIABLES = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")

# A module that only the rollout side imports as its main business.
_ENGINE_MODULES = ("sglang.srt.managers.scheduler", "vllm.v1.worker.gpu_worker")
_ENGINE_TITLES = ("sglang::", "VLLM::", "ray::SGLang", "ray::VLLM", "ray::vLLM")


@dataclass(frozen=True)
class ProcessIdentity:
    """One process of the job.

    Attributes:
        rank: Global rank, `None` where unknown.
        world_size: Number of ranks, `None` where unknown.
        local_rank: Rank on this host, `None` where unknown.
        host: Host name.
        pid: Process id.
        role: `trainer`, `engine_worker` or `other`, as in the evidence.
        framework: `miles`, `slime` …, "" where unknown.
        started_at_s: When the process started (wall clock, s).
        pid_started_ticks: Start time in clock ticks since boot (/proc/<pid>/stat), which tells
            this process from a later one with the same pid; 0 where unknown.
    """

    rank: int | None
    world_size: int | None
    local_rank: int | None
    host: str
    pid: int
    role: str
    framework: str
    started_at_s: float
    pid_started_ticks: int

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        return asdict(self)


def process_identity(
    environ: Mapping[str, str], *, rank: int | None = None, world_size: int | None = None
) -> ProcessIdentity:
    """Find out who this process is.

    Args:
        environ: Usually `os.environ`.
        rank: Rank that the caller knows, e.g. from `init_process_group`.
        world_size: World size that the caller knows.
    """
    pid = os.getpid()
    ticks = started_ticks(pid)
    from_torch = _ranks_of_torch()
    if rank is None:
        rank = from_torch[0] if from_torch else _first_number(environ, _RANK_VARIABLES)
    if world_size is None:
        world_size = from_torch[1] if from_torch else _first_number(environ, _WORLD_VARIABLES)
    return ProcessIdentity(
        rank=rank,
        world_size=world_size,
        local_rank=_first_number(environ, _LOCAL_RANK_VARIABLES),
        host=socket.gethostname(),
        pid=pid,
        role=_role(environ, rank),
        framework="",
        started_at_s=_wall_of_ticks(ticks),
        pid_started_ticks=ticks,
    )


def is_child_of_a_rank(environ: Mapping[str, str]) -> bool:
    """Whether `RANK` was inherited from a trainer that still runs, and is not this process."""
    owner = environ.get(OWNER_VARIABLE, "")
    _, _, pid = owner.partition(":")
    return pid.isdigit() and int(pid) != os.getpid() and started_ticks(int(pid)) > 0


def run_name(environ: Mapping[str, str]) -> str:
    """Name of the job's folder, the same on all ranks of it, different for another job.

    In this order: `MILES_WATCHDOG_RUN`; the Ray session and job; Slurm job and step; torchrun's
    run id with the start of its agent (one node) or the rendezvous address (several); the
    parent process and the rendezvous port; this process.
    """
    given = environ.get(RUN_VARIABLE, "").strip()
    restarts = environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    attempt = "" if restarts == "0" else f"-restart{restarts}"
    if given:
        # A launcher may have named the run before any restart, or a rank after it.
        return _as_name(given if given.endswith(attempt) else given + attempt)
    job = _ray_job() or environ.get("RAY_JOB_ID")
    if job:
        return _as_name(f"ray-{_ray_session()}-{job}")
    if environ.get("SLURM_JOB_ID") and "SLURM_PROCID" in environ:
        step = environ.get("SLURM_STEP_ID", "0")
        return _as_name(f"slurm-{environ['SLURM_JOB_ID']}-{step}{attempt}")
    run_id = environ.get("TORCHELASTIC_RUN_ID")
    if run_id and environ.get("GROUP_WORLD_SIZE", "1") != "1":
        address = f"{environ.get('MASTER_ADDR', '')}-{environ.get('MASTER_PORT', '')}"
        return _as_name(f"{run_id}-{address}{attempt}")
    ranked = _first_number(environ, _RANK_VARIABLES) is not None
    pid = os.getppid() if ranked or "multiprocessing.spawn" in sys.modules else os.getpid()
    port = f"-{environ['MASTER_PORT']}" if environ.get("MASTER_PORT") else ""
    started = time.strftime("%Y%m%d-%H%M%S", time.localtime(_wall_of_ticks(started_ticks(pid))))
    return _as_name(f"{started}-{pid}{port}{attempt}")


def started_ticks(pid: int) -> int:
    """Start time of a process (clock ticks since boot); 0 if it is gone, dead or unreadable."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def _wall_of_ticks(ticks: int) -> float:
    if not ticks:
        return time.time()
    booted_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return round(booted_s + ticks / os.sysconf("SC_CLK_TCK"), 1)


def _first_number(environ: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        if environ.get(name, "").isdigit():
            return int(environ[name])
    return None


def _ranks_of_torch() -> tuple[int, int] | None:
    torch_distributed: Any = sys.modules.get("torch.distributed")
    try:
        if torch_distributed is None or not torch_distributed.is_initialized():
            return None
        return torch_distributed.get_rank(), torch_distributed.get_world_size()
    except (AttributeError, RuntimeError, ValueError):
        return None


def _role(environ: Mapping[str, str], rank: int | None) -> str:
    if any(name in sys.modules for name in _ENGINE_MODULES) or _title().startswith(_ENGINE_TITLES):
        return "engine_worker"
    return "other" if rank is None or is_child_of_a_rank(environ) else "trainer"


def _title() -> str:
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return file.read(256).replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _ray_job() -> str:
    """The job that Ray runs this process for, "" where it is not connected.

    The environment does not tell: of a worker that was started in reserve it names no job.
    """
    worker: Any = sys.modules.get("ray._private.worker")
    try:
        job = worker.global_worker.current_job_id
        return "" if job.is_nil() else str(job.hex())
    except AttributeError:
        return ""


def _ray_session() -> str:
    worker: Any = sys.modules.get("ray._private.worker")
    node = getattr(worker, "_global_node", None)
    return str(getattr(node, "session_name", "") or "").removeprefix("session_")


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:120] or "run"
