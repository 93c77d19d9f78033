"""All known lines in one tuple, by family, written by hand."""

from __future__ import annotations

from watchdog.intake.log_lines import (
    LineKind,
    c10d_store,
    cuda,
    engine_calls,
    gloo,
    kernel,
    memory_saver,
    nccl,
    ray,
    sglang,
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
    *engine_calls.LINES,
    *sglang.LINES,
    *vllm.LINES,
    *ray.LINES,
    *training.LINES,
)
LITERALS: tuple[str, ...] = tuple(
    dict.fromkeys(literal for entry in FAMILIES for literal in entry.literals)
)
