"""An engine's metrics page: how many requests run, and how many wait."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, RawEvent, Who

LINE_LITERALS = ("num_running_reqs", "num_requests_running", "num_queue_reqs", "num_requests_wait")

_SAMPLE = re.compile(
    r"(?:sglang|vllm):(?P<name>\w{1,80})(?:\{(?P<labels>[^}]{0,400})\})?\s+(?P<value>\d+(?:\.\d+)?)\s*$"
)
_RUNNING = ("num_running_reqs", "num_requests_running")
_QUEUED = ("num_queue_reqs", "num_requests_waiting")
_RANK = re.compile(r"(?:tp_rank|engine)=\"(\d{1,4})\"")


def opens(text: str) -> bool:
    """A sample of one of the two counters."""
    match = _SAMPLE.match(text)
    return match is not None and match["name"] in (*_RUNNING, *_QUEUED)


def continues(text: str, block: Block) -> bool:
    """Further samples and comments."""
    return text.startswith("# ") or _SAMPLE.match(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """One `engine_load` event; of several ranks of one engine, the first counts."""
    fields: dict[str, str] = {}
    for line in block.lines:
        match = _SAMPLE.match(line)
        if match is None:
            continue
        rank = _RANK.search(match["labels"] or "")
        if rank and rank[1] != "0":
            continue
        value = str(int(float(match["value"])))
        if match["name"] in _RUNNING:
            fields.setdefault("running", value)
        elif match["name"] in _QUEUED:
            fields.setdefault("queued", value)
    if len(fields) < 2:
        return
    who = block.context.who.or_else(block.context.file_who)
    parts.add_event(
        RawEvent(
            kind="engine_load",
            text=" ".join(line.strip() for line in block.lines)[:300],
            file=block.context.file,
            line=block.number,
            moment=block.context.moment,
            who=who.or_else(Who(role="engine", by=("metrics page",))),
            fields={**fields, "source": "metrics"},
        )
    )
