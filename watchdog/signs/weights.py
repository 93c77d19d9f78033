"""Predicates about weights, memory and the flags that decide where a copy exists."""

from __future__ import annotations

from watchdog.evidence import LogEvent, Process
from watchdog.situation import Situation, lines
from watchdog.waits.kernel import USERFAULT_CHANNELS, thread_in

_READ_NAMES = (
    r"_compute_hash|weights_getter|tensor_backper"
    r"|named_params_and_buffers|_maybe_get_cpu_backup|preload_tensors"
)


def reads_weights(situation: Situation) -> tuple[Process, ...]:
    """Trainers that are in the weight read and do not move, by frame, kernel or phase."""
    found = [
        p
        for p in situation.doing("weight_read", "paused_memory", "gil_held")
        if situation.wait(p).kind != "gil_held" or paused_without_copy(p)
    ]
    return tuple(p for p in found if situation.moving(p) is not True)


def paused_without_copy(process: Process) -> list[str]:
    """The paused regions of the process that have no copy, one phrase each."""
    return [
        f"{process.key}: region {region.tag}"
        + (
            f" ({region.num_tensors} tensors: {', '.join(region.tensors[:3])} …)"
            if region.tensors
            else ""
        )
        + " is paused and has no host copy"
        for region in process.memory
        if region.residency == "paused_without_copy"
    ]


def copies_exist(process: Process) -> bool:
    """Whether the ledger of the process says of all that is paused that it has a host copy."""
    paused = [r for r in process.memory if r.residency != "resident"]
    return bool(paused) and all(r.residency == "backed_up" for r in paused)


def is_paused_for_sure(process: Process) -> bool:
    """Whether more than a function's name says that the memory it blocks in is paused."""
    return (
        any(region.residency != "resident" for region in process.memory)
        or thread_in(process, USERFAULT_CHANNELS) is not None
    )


def lora_flags(situation: Situation) -> list[str]:
    """The flags that together leave no host copy of a LoRA run's weights; empty if not all."""
    switches = situation.switches
    rank = switches.number("lora_rank")
    lora = bool(rank) or switches.on("lora_adapter_path") or _lora_by_provider(situation)
    return flags_without_copy(situation) if lora else []


def flags_without_copy(situation: Situation) -> list[str]:
    """The flags that leave no host copy of paused weights if the run is one of LoRA; or none."""
    switches = situation.switches
    backuper_off = switches.on("disable_weights_backuper") or switches.off(
        "enable_weights_backuper"
    )
    if not (backuper_off and switches.on("colocate", "offload_train", "offload")):
        return []
    names = (
        "lora_rank",
        "lora_adapter_path",
        "custom_model_provider_path",
        "colocate",
        "offload_train",
        "disable_weights_backuper",
        "enable_weights_backuper",
    )
    return [
        f"flag {name} = {flag.value}"
        for name in names
        if (flag := situation.flag(name)) is not None and flag.value not in (None, 0, "")
    ]


def _lora_by_provider(situation: Situation) -> bool:
    value = situation.switches.value("custom_model_provider_path")
    return isinstance(value, str) and "lora" in value.lower()


def weight_read_errors(situation: Situation) -> tuple[LogEvent, ...]:
    """Errors of memory that is not there, raised in the weight read."""
    import re

    place = re.compile(_READ_NAMES + r"|update_weights|save_model|save_checkpoint")
    return tuple(
        e
        for e in situation.logs.errors
        if lines.CUDA_MEMORY_FAULT.search(e.text)
        and e.engine is None
        and place.search(e.text + str(e.fields))
    )
