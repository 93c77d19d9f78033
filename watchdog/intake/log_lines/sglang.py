"""SGLang: scheduler, cache, LoRA adapters, its own watchdog.

What these lines do not say: `Cache not flushed` with a constant number of running requests means
stuck requests, with queued requests and none running it means retracted ones; the crash line of a
subprocess says which, the reason is above it or in the kernel's log.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

LINES = (
    line_kind(
        "engine_control",
        "Cache flushed successfully",
        r"Cache flushed successfully",
        op="flush",
        stage="end",
    ),
    line_kind(
        "engine_control",
        "Cache not flushed",
        r"Cache not flushed because there are pending requests"
        r"(?:.{0,10}#queue-req: (?P<queued>\d+))?(?:.{0,10}#running-req: (?P<running>\d+))?",
        op="flush",
        stage="retry",
    ),
    line_kind(
        "engine_load",
        "#running-req:",
        r"Decode batch.{0,3} ?#running-req: (?P<running>\d+)(?:, #full token: \d+)?"
        r"(?:, #token: (?P<tokens>\d+))?"
        r"(?:.{0,120}?throughput \(token/s\): (?P<throughput>[\d.]+))?"
        r"(?:.{0,60}?#queue-req: (?P<queued>\d+))?",
    ),
    line_kind(
        "engine_load",
        "Prefill batch",
        r"Prefill batch.{0,200}?#running-req: (?P<running>\d+)"
        r"(?:.{0,80}?#queue-req: (?P<queued>\d+))?",
        batch="prefill",
    ),
    line_kind(
        "engine_control",
        "nload Lora adapter",
        r"[Ss]tart unload Lora adapter\.?(?: Lora name=(?P<name>[\w.\-/]{1,100}))?",
        op="unload_lora",
        stage="begin",
    ),
    line_kind(
        "engine_control",
        ("nload Lora adapter", "unloading completes", "nloaded LoRA"),
        r"(?:LoRA adapter unloading completes|[Uu]nloaded LoRA"
        r"|[Uu]nload Lora adapter (?:done|complete\w*|finish\w*))",
        op="unload_lora",
        stage="end",
    ),
    line_kind(
        "engine_control",
        "tart load Lora adapter",
        r"[Ss]tart load Lora adapter\.?(?: Lora name=(?P<name>[\w.\-/]{1,100}))?",
        op="load_lora",
        stage="begin",
    ),
    line_kind(
        "engine_control",
        "LoRA adapter loading completes",
        r"LoRA adapter loading completes(?:: (?P<name>[\w.\-/]{1,100}))?",
        op="load_lora",
        stage="end",
    ),
    line_kind(
        "engine_control",
        "Failed to update parameter",
        r"Failed to update parameter(?: online)?(?P<detail>.{0,200})",
        op="update",
        stage="error",
    ),
    line_kind(
        "engine_exception",
        "hit an exception",
        r"(?P<part>Scheduler|Detokenizer\w*|TokenizerManager\w*|DataParallelController)"
        r" hit an exception",
    ),
    line_kind("engine_child_failed", "Received sigquit from a child process", r"Received sigquit"),
    line_kind(
        "engine_worker_died",
        "crashed with exit code",
        r"Subprocess (?P<name>\w{1,64})(?: \(pid=(?P<died_pid>\d+)\))? crashed with exit code"
        r" (?P<exit_code>-?\d+)",
    ),
    line_kind(
        "engine_ready", "The server is fired up", r"The server is fired up and ready to roll"
    ),
    line_kind(
        "engine_watchdog_timeout",
        ("atchdog timeout", "Watchdog Timeout"),
        r"(?:Scheduler|SGLang|self\.)?.{0,20}[Ww]atchdog [Tt]imeout(?: \((?P<detail>.{0,100}?)\))?",
    ),
    line_kind(
        "engine_watchdog_timeout",
        "Health check failed",
        r"Health check failed\. Server couldn't get a response",
    ),
    line_kind(
        "engine_arguments",
        "server_args=ServerArgs(",
        r"server_args=ServerArgs\((?P<arguments>.{0,4000})\)",
    ),
)
