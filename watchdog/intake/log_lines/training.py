"""Trainers and drivers: steps, phases, weight syncs, markers on disk, progress bars.

What these lines do not say: a counter that stands still may wait for somebody else's; `done` of a
sync says that the caller returned, not that the engines generate again.
"""

from __future__ import annotations

from watchdog.intake.log_lines import line_kind

_BARS = tuple(f"%|{cell}" for cell in (*" #", *map(chr, range(0x2588, 0x2590))))  # of any unit
_NAME = r"(?P<name>[A-Za-z_]\w{0,60})"

LINES = (
    line_kind("trainer_phase", "Timer ", rf"Timer {_NAME} start\b", stage="begin"),
    line_kind(
        "trainer_phase",
        "Timer ",
        rf"Timer {_NAME} end(?: \(elapsed: (?P<elapsed_s>[\d.]+) ?s\))?",
        stage="end",
    ),
    line_kind("trainer_phase", " phase=", r"fn=(?P<name>\w{1,80}) phase=start", stage="begin"),
    line_kind(
        "trainer_phase",
        " phase=",
        r"fn=(?P<name>\w{1,80}) phase=end ok=true(?: elapsed_s=(?P<elapsed_s>[\d.]+))?",
        stage="end",
    ),
    line_kind(
        "trainer_phase",
        " phase=",
        r"fn=(?P<name>\w{1,80}) phase=end ok=false(?: elapsed_s=(?P<elapsed_s>[\d.]+))?",
        stage="error",
    ),
    line_kind(
        "engine_list",
        "has_new_engines=",
        r"has_new_engines=(?P<has_new>True|False)(?:.{0,40}?engines=(?P<num_engines>\d+))?",
    ),
    line_kind(
        "sync_begin",
        (
            "roadcasting weights",
            "sync_weights begin",
            "Weight sync: pausing",
            "eight sync state",
            "update_weights start",
        ),
        r"(?i:starting broadcasting weights|sync_weights begin|weight sync: pausing"
        r"|initialized weight sync state.{0,120}starting|update_weights start)",
    ),
    line_kind(
        "sync_done",
        ("eights broadcasted in", "eight sync done", "weights from disk done", "eights updated"),
        r"(?i:weights broadcasted in|weight sync done in"
        r"|loading weights from disk done in|weights updated in)"
        r" (?P<elapsed_s>[\d.]+) ?s(?: \(version (?P<version>\d+)\))?",
    ),
    line_kind(
        "sync_step",
        "Weight sync: ",
        r"Weight sync: (?P<name>\w{1,40})(?P<detail>.{0,80})",
    ),
    line_kind(
        "file_wait",
        ("Waiting for path", "Waiting for NCCL_READY", "aiting for file", "marker at "),
        r"Waiting for (?:path|NCCL_READY marker at|file) `?(?P<path>/[^`\s]{1,400})`?"
        r"(?: for (?P<waited_s>\d+) seconds)?",
    ),
    line_kind("file_found", "Found path ", r"Found path `?(?P<path>/[^`\s]{1,400})`?"),
    line_kind(
        "waiting_for_requests",
        "waiting for in-flight",
        r"waiting for in-flight (?P<what>[\w ]{1,60}?) before updating weights",
    ),
    line_kind(
        "barrier_arrival",
        "arrived at barrier",
        r"(?P<what>[\w ]{1,40}), arrived at barrier",
    ),
    line_kind(
        "checkpoint_save",
        "saving checkpoint",
        r"saving checkpoint at iteration +(?P<step>\d+) to (?P<path>\S+)",
    ),
    line_kind(
        "checkpoint_load",
        ("distributed checkpoint from", "loading checkpoint", "Loading checkpoint"),
        r"[Ll]oading (?:release )?(?:distributed )?checkpoint(?: shards)?(?: from (?P<path>\S+))?",
    ),
    line_kind(
        "rollout_wait",
        "accepted=",
        r"wait.{0,60}accepted=(?P<done>\d+)(?:/(?P<total>\d+))? running=(?P<running>\d+)",
    ),
    line_kind(
        "progress",
        (*_BARS, "it/s", "s/it", "?it"),
        r"(?P<name>[^|\[\]]{0,60}?):? +(?P<percent>\d{1,3})% ?(?:Completed )?\|.{0,40}"
        r"(?<=\|) *(?P<done>\d+)/(?P<total>\d+)"
        r" \[(?P<elapsed>[\d:]+)",
        form="bar",
    ),
    line_kind(
        "progress",
        "?it",
        r"(?P<name>[^|]{0,80}?): (?P<done>0)it \[(?P<elapsed>[\d:]+)",
        form="bar",
    ),
    line_kind(
        "progress",
        ("it/s", "s/it"),
        r"(?P<name>[^|]{0,80}?): (?P<done>\d+)it \[(?P<elapsed>[\d:]+)",
        form="bar",
    ),
    line_kind(
        "progress",
        (
            "micro_batch ",
            "micro-batch ",
            "bucket ",
            "Step ",
            "step ",
            "rollouts done",
            "Iteration ",
            "iteration ",
        ),
        r"(?P<name>micro[_-]batch|bucket|[Tt]rain step|Step|step"
        r"|iteration|Iteration)s?:? +\[?(?P<done>\d+)\]?"
        r"/ *(?P<total>\d+)(?:.{0,40}?seq=(?P<seq>\d+))?",
    ),
    line_kind(
        "progress",
        " done",
        r"(?P<name>[\w ]{1,40}): (?P<done>\d+)/(?P<total>\d+) \w+ done",
    ),
    line_kind(
        "progress",
        ("step:", "step ", "Step "),
        r"(?<!\bat )(?<!from )(?<!after )(?<!until )\b(?P<name>[Ss]tep)[: ] ?(?P<done>\d+)\b(?! ?/)"
        r"(?= ?[-:|]| loss| \w+ )",
    ),
    line_kind(
        "engine_address",
        "engine ",
        r"^engine (?P<engine_index>\d{1,5})\s+(?P<url>https?://\S{1,200})"
        r"(?:.{0,40}?pid (?P<actor_pid>\d{1,9}))?",
    ),
    line_kind(
        "engine_address",
        ("engine", "replica", "server", "instance"),
        r"^\W{0,4}(?:rollout[_ ])?(?:engine|replica|server|instance)(?:[_ ]?(?:rank|index|id))?"
        r"[ =:#]{1,2}(?P<engine_index>\d{1,5})\b\W{1,5}pid[ =:#]{1,2}(?P<actor_pid>\d{2,9})\b"
        r"(?:\W{1,5}(?P<url>(?:https?://)?[\w.\-]{1,200}:\d{2,5})\b)?",
    ),
    line_kind(
        "progress",
        ("shard ", "shards"),
        r"(?i)(?P<name>load\w*.{0,60}?shards?):? (?P<done>\d{1,5}) ?/ ?(?P<total>\d{1,5})\b",
    ),
    line_kind(
        "progress",
        ("-> engine ", " to engine "),
        r"(?P<name>[a-z]\w{2,40}) (?:->|to) engine (?P<done>\d{1,4})\b",
    ),
    line_kind(
        "own_pid",
        "pid ",
        r"\b(?:init(?:ialized)?|start(?:ed|ing)|ready|running|up)\b.{0,30}?"
        r"\bpid[ =:]+(?P<own_pid>\d{2,9})\b",
    ),
    line_kind(
        "rank_decision",
        ("=True", "=False", "engines=", "buckets=", "num_", "count="),
        r"^(?:\S{1,60}:\d+ - )?(?:[\w ]{1,40}[:,] )?(?P<name>[a-z]\w{2,40})="
        r"(?P<value>True|False|\d{1,6})\b(?!\.\d)(?!.{200})",
    ),
    line_kind(
        "weight_received",
        ("update weight", "updating weight", "update_weight", "Received weight"),
        r"(?i)(?:updat\w+|receiv\w+)[ _]weights?:? "
        r"(?P<tensor>[\w.]{0,100}?\.(?P<done>\d{1,4})\.[\w.]+)",
        name="weights received, layer",
    ),
    line_kind(
        "worker_group_restart",
        ("estarting worker group", "estarting the job", "estarted worker group"),
        r"[Rr]estart(?:ing|ed) (?:the )?(?:worker group|job)(?: \((?P<done>\d+)/(?P<total>\d+)\))?",
    ),
    line_kind("progress", "wc -l", r"^\W*(?P<name>.{1,120}?wc -l)\W+(?P<done>\d+)$"),
    line_kind("rollout_done", "rollout ", r"\brollout (?P<done>\d+)[: ]"),
    line_kind(
        "terminated", "terminate called", r"terminate called after throwing (?P<what>.{1,120})"
    ),
)
