"""What log lines mean to the diagnosis, by their text.

One table of expressions, so that a line counts the same whoever parsed it. What a line does *not*
say stands beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from watchdog.evidence import LogEvent
from watchdog.exit_status import STALLED

TIME_OUT = re.compile(
    r"Watchdog caught collective operation timeout|Timed out waiting \d+\s*ms|Application timeout"
    r" caused pair closure|wait timeout after \d+|failure detected by watchdog|Timeout\(ms\)="
    r"|DistBackendError|DistStoreError|Process group watchdog thread terminated|dump signal|flight"
    r" recorder dump|monitored_?barrier|failed to pass"
    r"|[Ww]atchdog [Tt]imeout \(|Health check failed\. Server couldn't get a response"
    r"|RendezvousTimeout|exceeded timeout|ReadTimeout"
    r"|watchdog got stuck|NCCL communicator was aborted|To avoid data inconsistency"
    r"|Some NCCL operations have failed|Stack trace of the failed collective"
)
"""A wait that was too long. Written by the punctual, not by the one who is late."""

PEER_LOST = re.compile(
    r"Connection (closed|reset) by peer|Broken pipe|should dump|remote process exited|EOFError"
    r"|Connection refused|ncclRemoteError|sendBytes failed|ConnectionResetError|terminate called"
    r"|Socket Timeout|connection was (closed|aborted)"
    r"|Fatal Python error: Aborted|RemoteDisconnected"
)
"""A peer is gone. Look for its exit; the writer is a victim."""

DEATH = re.compile(
    r"Killed process (?P<pid>\d+)|crashed with exit code"
    r"|exit(ed with)? ?code:? *-?\d+|exitcode *: *-?\d+"
    r"|ActorDiedError|actor died|The actor is dead|RayActorError"
    r"|ActorUnavailableError|WorkerCrashedError|died unexpectedly"
    r"|worker process has died|Worker unexpectedly exits"
    r"|EngineDeadError|EngineCore .{0,40}(died|failed)"
    r"|received SIGKILL|Signal 9|SIGKILL|\bDEAD\b|Segmentation"
    r" fault|SIGSEGV|core dumped|Received sigquit from a child"
)
"""A process ended. With a pid it names the dead one."""

ENDED_BY_WATCHDOG = re.compile(rf"exit ?code ?[:=]? *{STALLED}\b|exit status {STALLED}\b")
"""The watchdog ended it, as `MILES_WATCHDOG_ABORT_AFTER` asks: never the first failure."""

OUT_OF_MEMORY = re.compile(
    r"out of memory|OutOfMemory|oom[-_ ]kill|OOM|Killed"
    r" process \d+|Memory cgroup|exit code -9|cudaError 2\b"
    r"|CUDA_ERROR_OUT_OF_MEMORY|Cannot allocate memory|No space left on /dev/shm|memory pressure"
)
"""Memory ran out, on a host or a device."""

CUDA_MEMORY_FAULT = re.compile(
    r"CUDA error: (invalid argument|an illegal memory"
    r" access)|CUresult error: 1|illegal memory access"
    r"|Cannot pause allocation|invalid resource handle|ILLEGAL_ADDRESS"
)
"""Memory was touched that is not there: released, unmapped or closed."""

TRANSPORT_FAULT = re.compile(
    r"NCCL WARN.*(?:[Gg]ot completion (?:from peer \S+ )?with (?:error |status=)(?!5\b)\d+"
    r"|[Cc]all to ibv_\w+ (?:failed|returned)|ibv_\w+ failed|async (?:fatal )?event"
    r"|creating shared memory segment|extend /dev/shm|No space left on device"
    r"|Cuda failure|Failed to (?:open|bind|map))"
)
"""What a transport met by itself. Status 5 (flushed) is that of the other end of a broken link."""

_DEVICE_FAULT = re.compile(r"CUresult error: [1-9]|cudaError error: [1-9]|CUDA out of memory")
"""What a library prints before it ends the process without a traceback."""

LOOPBACK = re.compile(
    r"Using the loopback address|remote=\[?(localhost|127\.)"
    r"|connect(ing)? (to )?\[?127\.|Bootstrap: Using (lo|veth|docker)"
    r"|Unable to resolve hostname|connectFullMesh failed|ifname"
    r" .{0,40}not found|Call to bind failed|No such device"
    r"|Unable to find address for"
)
"""An address that other hosts cannot reach."""

PAUSE = re.compile(
    r"/pause(_generation)?\b|pause_generation|paused"
    r" generation|generation paused|Weight sync: pausing"
)
RESUME = re.compile(
    r"/(continue_generation|resume)\b(?!_)|continue_generation"
    r"|resume_generation|generation resumed|resumed generation"
)
HOLDING = re.compile(
    r"generation is paused|holding request|is_paused.{0,6}true|requests? held", re.IGNORECASE
)
FLUSH_REFUSED = re.compile(
    r"Cache not flushed because|(/flush_cache|/reset_prefix_cache)[^\n]*\""
    r" [45]\d\d|Flush cache failed|flushing cache"
)
UPDATE = re.compile(
    r"update_weight|/update_named_param|load_lora_adapter"
    r"|/collective_rpc|Receiving packed weights|weight_transfer"
)
UNLOAD = re.compile(r"[Ss]tart unload Lora adapter|unload_lora_adapter")
UNLOADED = re.compile(r"LoRA adapter unloading completes|unload_lora_adapter[^\n]*\" 200")
ENGINE_SLEEP = re.compile(
    r"/sleep|fall asleep|Sleep mode freed|/release_memory_occupation|release_memory_occupation"
)
ENGINE_WAKE = re.compile(r"/wake_up|to wake up|/resume_memory_occupation|resume_memory_occupation")
REQUEST_FAILED = re.compile(
    r"\"(POST|GET|PUT) (?P<path>/[\w/?=&.-]*) HTTP/[\d.]+\" (?P<status>[45]\d\d)"
)
REQUEST = re.compile(r"\"(POST|GET|PUT) (?P<path>/[\w/?=&.-]*) HTTP/[\d.]+\" (?P<status>\d\d\d)")
HEALTH = re.compile(r"/health|/get_model_info|/metrics")
IDLE_NOTICE = re.compile(r"No available shared memory broadcast block")
"""A notice of a message loop, also printed when there is nothing to do: says nothing alone."""

TRAINER_SLEEP = re.compile(
    r"fn=sleep\b|Timer sleep\b|Memory-Usage (before|after) offload"
    r" model|\boffload(ed)? (model|train)|\bsleep\(\)|release\(\)"
)
TRAINER_WAKE = re.compile(
    r"fn=wake_up\b|Timer wake_up\b|Memory-Usage (before"
    r"|after) (onload|wake_up|load) model|\bwake_up\(\)"
)
SYNC_BEGIN = re.compile(
    r"Timer update_weights start|fn=update_weights phase=start"
    r"|Memory-Usage before update_weights|update_weights start"
    r"|sync_weights begin|Starting broadcasting weights|Weight"
    r" sync: pausing|starting weight (sync|update)|\(refit\)",
    re.I,
)
SYNC_END = re.compile(
    r"Timer update_weights end|fn=update_weights phase=end ok=true"
    r"|Memory-Usage after update_weights|Weights broadcasted in"
    r"|weight sync done|update_weights:\d|Loading weights from"
    r" disk done|timing_s/update_weights|sync \d+(\.\d+)?s\b",
    re.I,
)
EXCEPTION = re.compile(
    r"(?m)^\s*(?:\x1b\[[\d;]*m)*((?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error"
    r"|Exception|Exit|Interrupt|Fault|Warning))\b:? ?(.*)$"
)


def exception_of(event: LogEvent) -> str:
    """The class of the exception that the event reports, "" where it reports none."""
    named = event.fields.get("exception", "")
    if named:
        return named.rsplit(".", 1)[-1]
    found = [
        m.group(1) for m in EXCEPTION.finditer(event.text) if not m.group(1).endswith("Warning")
    ]
    return found[-1].rsplit(".", 1)[-1] if found else ""


def is_error(event: LogEvent) -> bool:
    """Whether it is an error of its own: not a time-out, not a peer's end, not a refused probe."""
    if TIME_OUT.search(event.text) or PEER_LOST.search(event.text):
        return False
    if event.kind in ("traceback", "exception", "python_error"):
        return True
    if event.kind == "nccl_error" and TRANSPORT_FAULT.search(event.text):
        return True
    if CUDA_MEMORY_FAULT.search(event.text) or _DEVICE_FAULT.search(event.text):
        return True
    return bool(exception_of(event)) and event.kind not in ("warning",)


def cited(event: LogEvent) -> str:
    """Where the event stands, and the time its line has: `driver.log:11374, 05:41:17`.

    The time of day is that of the log, in whatever zone its host writes; "" without either.
    """
    place = f"{event.file}:{event.line}" if event.file else ""
    is_its_own = event.time_s is not None and "time_of" not in event.fields
    time = clock(event.time_s or 0) if is_its_own else ""
    return ", ".join(part for part in (place, time) if part)


def clock(time_s: float) -> str:
    """The time of day of a log's moment (s since the epoch): `05:41:17`."""
    seconds = int(time_s) % 86_400
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def with_source(words: str, event: LogEvent) -> str:
    """What is said on the strength of a line, with where that stands behind it in brackets."""
    source = cited(event)
    return f"{words} ({source})" if source else words


def matching(events: Iterable[LogEvent], expression: re.Pattern[str]) -> tuple[LogEvent, ...]:
    """The events whose text matches, in their order."""
    return tuple(event for event in events if expression.search(event.text))
