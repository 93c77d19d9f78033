"""vLLM: cores, workers, pauses, sleep, data-parallel waves.

What these lines do not say: `No available shared memory broadcast block` is a notice of whoever
waits in the message loop, also printed when there is nothing to do; `finished wave` says that a
core went idle, not that all did.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "engine_control",
        ("ause requested", "ause_generation requested"),
        r"(?i:\bpause(?:_generation)? requested\b)",
        op="pause",
        stage="begin",
    ),
    line_kind(
        "shm_broadcast_notice",
        "shared memory broadcast block",
        r"No available shared memory broadcast block found in (?P<waited_s>\d+) ?s",
    ),
    line_kind(
        "engine_load",
        "Avg generation throughput",
        r"(?:Engine (?P<replica>\d{1,4}): )?.{0,80}"
        r"Avg generation throughput: (?P<throughput>[\d.]+)"
        r" tokens/s, Running: (?P<running>\d+) reqs?, Waiting: (?P<queued>\d+) reqs?",
    ),
    line_kind(
        "engine_control",
        ("pause_generation", "abort_all_requests", "generation paused"),
        r"(?:pause_generation: ?abort(?:ing|ed) (?P<requests>\d+)|abort_all_requests: ?paused"
        r"|(?<!POST /)generation paused)",
        op="pause",
        stage="end",
    ),
    line_kind(
        "engine_control",
        (
            "continue_generation:",
            "resume_generation:",
            "generation resumed",
            "generation continued",
        ),
        r"(?:continue_generation: |resume_generation: |generation (?:resumed|continued))",
        op="resume",
        stage="end",
    ),
    line_kind(
        "requests_held",
        "holding request",
        r"generation is paused, holding requests?(?: \(held: (?P<held>\d+)\))?",
    ),
    line_kind(
        "engine_control",
        "utility call collective_rpc(",
        r"Handling utility call collective_rpc\((?P<name>(?:update|load|receive|reload)\w*)\)",
        op="update",
        stage="begin",
    ),
    line_kind(
        "engine_control",
        ("Receiving packed weights", "areal_update_weight", "update_weights start"),
        r"(?:Receiving packed weights(?: \((?P<num_parameters>\d+) parameters)?"
        r"|starts areal_update_weight|^update_weights start)",
        op="update",
        stage="begin",
    ),
    line_kind(
        "engine_control",
        "Loaded new LoRA adapter",
        r"Loaded new LoRA adapter: name '(?P<name>[\w.\-/]{1,100})'",
        op="load_lora",
        stage="end",
    ),
    line_kind(
        "dp_wave",
        ("finished wave", "idle loop for wave", "starting wave"),
        r"(?:EngineCore )?(?P<what>finished|starting)(?: idle loop for)? wave (?P<wave>\d+)"
        r"(?:, engines_running=(?P<running>\w+))?",
    ),
    line_kind(
        "engine_worker_died",
        "died unexpectedly",
        r"Worker proc (?P<name>[\w\-]{1,64}) died unexpectedly",
    ),
    line_kind(
        "engine_dead",
        (
            "EngineDeadError",
            "encountered a fatal error",
            "EngineCore ",
            "ngine core initialization failed",
            "fatal signal from worker processes",
        ),
        r"EngineDeadError|EngineCore (?:encountered (?:a fatal error|an issue)|hit an exception"
        r"|failed to start)|[Ee]ngine core initialization failed"
        r"|Got fatal signal from worker processes, shutting down",
    ),
    line_kind("engine_ready", "Application startup complete", r"Application startup complete"),
    line_kind(
        "engine_version",
        ("vLLM API server version", "V1 LLM engine"),
        r"(?:vLLM API server version |V1 LLM engine \(v)(?P<version>[\w.+]+)",
    ),
    line_kind(
        "engine_arguments",
        "with config: ",
        r"V1 LLM engine \(v[\w.+]+\) with config: (?P<arguments>.{0,4000})",
    ),
)
