"""Pausable memory: torch_memory_saver, sleep and wake of trainers and engines.

What these lines do not say: torch_memory_saver ends the process with status 1 and no traceback,
so its last line is often the only trace; a `sleep` that answered 200 may have left work running.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "memory_saver_error",
        ("[torch_memory_saver.cpp]", "CUresult error"),
        r"(?:\[torch_memory_saver\.cpp\] ?(?P<detail>.{0,300})|CUresult error.{0,200})",
    ),
    line_kind(
        "cu_result_error",
        "CUresult error",
        r"CUresult error:? ?(?P<code>\d+)(?: \((?P<error>[^)]{1,100})\))?",
    ),
    line_kind(
        "trainer_memory",
        "Memory-Usage ",
        r"Memory-Usage (?P<when>before|after) (?P<what>[\w ]{1,60}?):"
        r"(?:.{0,80}'free_GB': (?P<free_gb>[\d.]+), 'used_GB': (?P<used_gb>[\d.]+))?",
    ),
    line_kind(
        "lora_buffer_backup_disabled",
        "for LoRA colocate mode",
        r"Patched (?P<what>\S+) for LoRA colocate mode",
    ),
    line_kind(
        "process_groups_reloaded",
        "Reloading ",
        r"Reloading (?P<num_groups>\d+) process groups in pid (?P<group_pid>\d+)",
    ),
    line_kind(
        "engine_control",
        "to fall asleep",
        r"It took (?P<elapsed_s>[\d.]+) seconds to fall asleep",
        op="sleep",
        stage="end",
    ),
    line_kind(
        "engine_control",
        "to wake up",
        r"It took (?P<elapsed_s>[\d.]+) seconds to wake up",
        op="wake",
        stage="end",
    ),
)
