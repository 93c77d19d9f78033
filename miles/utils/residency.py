"""Whether weights can be read: the audit before each weight sync.

Validation sees flags; memory tells the truth. Nothing here reads a tensor's data, and
nothing takes a lock, so all of it may be called while another thread is stuck in a read.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from miles.utils.residency_ledger import LEDGER

_NUM_NAMES_SHOWN = 5

# What a reader of the message needs to see, in the order in which it matters.
_FLAGS_SHOWN = (
    "colocate",
    "offload_train",
    "offload_train_target",
    "enable_weights_backuper",
    "disable_param_buffers_cpu_backup",
    "lora_rank",
    "lora_adapter_path",
    "lora_train_only",
    "custom_model_provider_path",
)


class ResidencyState(str, Enum):
    """What becomes of a read: it returns, it needs the host copy, or it waits for ever."""

    RESIDENT = "resident"
    BACKED_UP = "backed_up"
    PAUSED_WITHOUT_COPY = "paused_without_copy"


@dataclass(frozen=True)
class Residency:
    """Where a tensor's bytes are.

    Attributes:
        state: Resident; paused, with a host copy; paused, and no copy that can be read.
        tag: The region that it lies in; `None` for ordinary memory, which is never paused.
        backup_target: Where a copy is kept right now: `cpu`, `disk`, or `None`. A copy on
            disk comes back with the resume, and cannot be read before.
    """

    state: ResidencyState
    tag: str | None
    backup_target: str | None = None


class WeightsUnavailableError(RuntimeError):
    """Weights are about to be read whose memory is paused and that have no copy."""


def classify(tensor: torch.Tensor) -> Residency:
    """Say where a tensor's bytes are, without reading them."""
    allocation = LEDGER.find(tensor)
    if allocation is None:
        return Residency(ResidencyState.RESIDENT, None)
    if not allocation.is_paused:
        return Residency(ResidencyState.RESIDENT, allocation.tag)
    target = None if allocation.backup is None else allocation.backup.target
    on_host = target == "cpu"
    state = ResidencyState.BACKED_UP if on_host else ResidencyState.PAUSED_WITHOUT_COPY
    return Residency(state, allocation.tag, target)


def audit_weights(
    named_tensors: Iterable[tuple[str, torch.Tensor]],
    args: Namespace,
    *,
    reads_host_copies: bool = True,
) -> None:
    """Refuse to go on if one of the tensors that are about to be read cannot be read.

    Does nothing with `--no-weight-residency-audit`.

    Args:
        named_tensors: Exactly what will be read, with names. May be empty.
        args: The run's arguments; quoted in the error.
        reads_host_copies: Whether the reader goes through `get_cpu_backup`. If it reads the
            tensors themselves, one that merely has a host copy is refused as well.

    Raises:
        WeightsUnavailableError: Names how many, the first few with their regions, the flags
            that led here, and what to do.
    """
    if not args.weight_residency_audit:
        return
    named = list(named_tensors)
    LEDGER.name_tensors(named)
    found = [(name, classify(tensor)) for name, tensor in named]
    lost = [(name, each) for name, each in found if not _is_readable(each, reads_host_copies)]
    if lost:
        raise WeightsUnavailableError(_message(lost, len(named), args))


def residency_snapshot() -> dict[str, dict[str, Any]]:
    """What lies in pausable memory right now, for an observer in the same process.

    Safe in any thread at any time: it reads no tensor and takes no lock.

    Returns:
        Region tag to a dict that JSON can hold: `paused` (any of it), `bytes`,
        `num_tensors` (named ones, or allocations without a name), `num_allocations`,
        `num_allocations_paused`, `has_backup` (all of it keeps its bytes over a pause),
        `backup_target` (`cpu` or `disk` while a copy exists, else `None`) and
        `first_tensors` (at most five names; empty where unknown). Regions that hold
        nothing any more are missing.
    """
    return LEDGER.snapshot()


def name_tensors(named_tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
    """Note what tensors are called, so that `residency_snapshot` can name them."""
    LEDGER.name_tensors(named_tensors)


def _is_readable(residency: Residency, reads_host_copies: bool) -> bool:
    if residency.state is ResidencyState.BACKED_UP:
        return reads_host_copies
    return residency.state is ResidencyState.RESIDENT


def _message(lost: list[tuple[str, Residency]], num_weights: int, args: Namespace) -> str:
    first = ", ".join(f"{name} ({_place(each)})" for name, each in lost[:_NUM_NAMES_SHOWN])
    more = len(lost) - _NUM_NAMES_SHOWN
    flags = ", ".join(
        f"{name}={getattr(args, name)!r}" for name in _FLAGS_SHOWN if hasattr(args, name)
    )
    lines = [
        f"{len(lost)} of {num_weights} weights cannot be read: their memory is paused and "
        "there is no copy to read instead. Reading them would wait for ever, without an error.",
        f"First: {first}" + (f", and {more} more." if more > 0 else "."),
        f"Flags: {flags}.",
        *_contradictions(lost, args),
        f"What to do: {_remedy(lost)}",
    ]
    return "\n".join(lines)


def _place(residency: Residency) -> str:
    where = f"region {residency.tag}"
    if residency.backup_target == "disk":
        return f"{where}, its copy is on disk"
    if residency.backup_target == "cpu":
        return f"{where}, its host copy is not what is read"
    return f"{where}, no backup"


def _contradictions(lost: list[tuple[str, Residency]], args: Namespace) -> list[str]:
    """What memory shows that the flags deny."""
    has_bare_params = any(
        each.tag == "param_buffer" and each.backup_target is None for _, each in lost
    )
    if has_bare_params and not getattr(args, "disable_param_buffers_cpu_backup", True):
        return [
            "Validation left the host backup of param_buffer on, and the region has none: it was "
            "turned off afterwards, as patch_param_grad_buffer_for_colocate_mode_lora() does. "
            "A model that builds LoRA by itself is the usual reason."
        ]
    return []


def _remedy(lost: list[tuple[str, Residency]]) -> str:
    targets = {each.backup_target for _, each in lost}
    if targets == {"disk"}:
        return "resume the trainer before the sync, or read through the weights backuper."
    if targets == {"cpu"}:
        return "read the host copies (get_cpu_backup), or resume the trainer before the sync."
    return (
        "keep the weights backuper (remove --disable-weights-backuper), or do not offload the "
        "trainer (--no-offload-train). If the model brings its own LoRA, also say so with "
        "--lora-rank, so that validation and sleep() know of it."
    )
