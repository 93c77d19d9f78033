"""All known lines in one tuple, by family, written by hand."""

from __future__ import annotations

from watchdog.intake.log_lines import (
    LineKind,
    LineTable,
    c10d_store,
    cuda,
    engine_calls,
    gloo,
    kernel,
    kubernetes,
    launchers,
    listings,
    memory_saver,
    nccl,
    own,
    ray,
    remarks,
    sglang,
    slurm,
    training,
    vllm,
)

FAMILIES: tuple[LineKind, ...] = (
    *gloo.LINES,
    *nccl.LINES,
    *c10d_store.LINES,
    *memory_saver.LINES,
    *cuda.LINES,
    *kernel.LINES,
    *kubernetes.LINES,
    *launchers.LINES,
    *own.LINES,
    *slurm.LINES,
    *engine_calls.LINES,
    *sglang.LINES,
    *vllm.LINES,
    *ray.LINES,
    *training.LINES,
    *listings.LINES,
    *remarks.LINES,
)
KNOWN_LINES = LineTable(FAMILIES)
# These stand in so many lines that a big log is not searched for them: they are read where all
# lines are read (its beginning, its end, samples between), and their counts are lower bounds.
ENDS_ONLY = frozenset(
    (
        "engine_load",
        "http_access",
        "lock_file",
        "own_pid",
        "progress",
        "rank_decision",
        "ray_idle",
        "rank_announced",
        "rollout_done",
        "remark_duration",
        "observed_at",
        "gpu_spinning",
        "weight_received",
    )
)
LITERALS: tuple[str, ...] = tuple(
    dict.fromkeys(
        literal for entry in FAMILIES if entry.kind not in ENDS_ONLY for literal in entry.literals
    )
)
