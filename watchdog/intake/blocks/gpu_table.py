"""GPU utilisation and power: `nvidia-smi`, its CSV, and tables that people make of it."""

from __future__ import annotations

import re

from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, RawEvent, Who
from watchdog.intake.times import Moment, find_moment

LINE_LITERALS = ("utilization.gpu", "NVIDIA-SMI ", "util.gpu", "GPU-Util")

_CSV_ROW = re.compile(r"\s*\d{1,4}\s*,\s*[\d.]+\s*%?\s*,.*$")
_BOX_NAME = re.compile(r"\|\s*(?P<index>\d{1,4})\s+\S.*\|\s*$")
_BOX_USE = re.compile(
    r"\|.*?(?P<power>\d+)W\s*/\s*\d+W\s*\|\s*(?P<memory>\d+)MiB\s*/\s*\d+MiB\s*\|\s*(?P<util>\d+)%"
)
_GROUP = re.compile(r"(?P<util>[\d.]+)\s*%\s+(?:(?P<mem>[\d.]+)\s*%\s+)?(?P<power>[\d.]+)\s*W")
_RANK_ROW = re.compile(r"\s*(?P<index>\d{1,6})\s+(?=[\d.]+\s*%)")
_NUMBER = re.compile(r"[\d.]+")


def opens(text: str) -> bool:
    """The header of the CSV, of the box, or of a table by rank."""
    return "utilization.gpu" in text or "NVIDIA-SMI " in text or "util.gpu" in text


def continues(text: str, block: Block) -> bool:
    """Rows of the same form."""
    if not text.strip():
        return False
    if text[0] in "+|":
        return True
    first = text.lstrip()[:1]
    return first.isdigit() or first == "|" or _CSV_ROW.match(text) is not None


def parse(block: Block, parts: Parts) -> None:
    """One `gpu_utilization` event a GPU and time."""
    header = block.lines[0]
    if "utilization.gpu" in header:
        _csv(block, parts)
    elif "util.gpu" in header:
        _by_rank(block, parts)
    else:
        _box(block, parts)


def _csv(block: Block, parts: Parts) -> None:
    start = block.lines[0].find("index")
    columns = [name.split("[")[0].strip() for name in block.lines[0][max(0, start) :].split(",")]
    names = {
        "utilization.gpu": "util",
        "utilization.memory": "mem_util",
        "power.draw": "power_w",
        "memory.used": "memory_mib",
        "index": "index",
    }
    for offset, line in enumerate(block.lines[1:], start=1):
        fields: dict[str, str] = {}
        for column, value in zip(columns, line.split(","), strict=False):
            number = _NUMBER.search(value)
            if column in names and number:
                fields[names[column]] = number[0]
        _add(block, offset, fields, parts)


def _box(block: Block, parts: Parts) -> None:
    index = ""
    for offset, line in enumerate(block.lines):
        use = _BOX_USE.match(line)
        name = _BOX_NAME.match(line)
        if use and index:
            fields = {"index": index, "util": use["util"], "power_w": use["power"]}
            _add(block, offset, fields | {"memory_mib": use["memory"]}, parts)
            index = ""
        elif name:
            index = name["index"]


def _by_rank(block: Block, parts: Parts) -> None:
    names = block.lines[0].split()
    moments = [block.context.moment]
    is_rank = bool(names) and names[0].lower() == "rank"
    for offset, line in enumerate(block.lines[1:], start=1):
        row = _RANK_ROW.match(line)
        for number, group in enumerate(_GROUP.finditer(line) if row else ()):
            fields = {"index": row["index"] if row else "", "util": group["util"]}
            fields["power_w"] = group["power"]
            if group["mem"]:
                fields["mem_util"] = group["mem"]
            fields["sample"] = str(number + 1)
            rank = int(fields["index"]) if is_rank else None
            _add(block, offset, fields, parts, rank, moments[0])


def _add(
    block: Block,
    offset: int,
    fields: dict[str, str],
    parts: Parts,
    rank: int | None = None,
    moment: Moment | None = None,
) -> None:
    if "index" not in fields or "util" not in fields:
        return
    context = block.context
    if moment is None:
        found = find_moment(block.lines[0])
        moment = context.moment or (found[0] if found else None)
    who = Who(rank=rank, host=context.who.host)
    text = block.lines[offset].strip()[:300]
    parts.add_event(
        RawEvent("gpu_utilization", text, context.file, block.number + offset, moment, who, fields)
    )
