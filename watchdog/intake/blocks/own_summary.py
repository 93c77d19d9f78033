"""The watchdog's own summary of a stall, as it stands in the log of the run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from watchdog.intake.blocks import Block
from watchdog.intake.parts import Parts, RawEvent, Who
from watchdog.masking import mask_text

KIND = "watchdog_verdict"
LINE_LITERALS = tuple(
    f"[miles-watchdog] {state}: " for state in ("HUNG", "SLOW", "CRASHED", "HEALTHY", "UNKNOWN")
)

_LABELLED = re.compile(r"\[miles-watchdog\] (?P<label>[a-z]{2,8}| {8}) +(?P<text>\S.*)$")
_HEADLINE = re.compile(r"\[miles-watchdog\] (?P<state>[A-Z]+): (?P<headline>.*)$")
_CULPRIT = re.compile(
    r"(?P<culprit>(?:ranks?|engine|driver|pid) ?[\w ,-]*?)"
    r"(?: \(pid (?P<culprit_pid>\d{1,9})(?: on (?P<culprit_host>[^)\s]{1,255}))?\))?"
    r": (?P<where>.*)$"
)
_LABELS = frozenset(
    ("culprit", "why", "stall", "cause", "do", "progress", "next", "waiting", "silent", "report")
)
_WAITING = re.compile(r"ranks? (?P<ranks>\d[\d, -]{0,200}): ")
_OF_RANKS = re.compile(r"\bof (?P<size>\d{1,6}) ranks\b")
_MAX_LINES = 60
_MAX_RANKS = 10_000


def opens(text: str) -> bool:
    """The headline."""
    return text.startswith(LINE_LITERALS)


def continues(text: str, block: Block) -> bool:
    """Lines with a label of the summary's, and what they are wrapped into."""
    found = _LABELLED.match(text)
    is_ours = found is not None and (found["label"].isspace() or found["label"] in _LABELS)
    return is_ours and len(block.lines) < _MAX_LINES


def parse(block: Block, parts: Parts) -> None:
    """A `watchdog_verdict` event: state, headline, who, where, why, cause, path of the report."""
    head = _HEADLINE.match(block.lines[0])
    if head is None:
        return
    fields = {"state": head["state"].lower(), "headline": head["headline"]}
    label = "headline"
    said: dict[str, list[str]] = {label: [head["headline"]]}
    for line in block.lines[1:]:
        found = _LABELLED.match(line)
        if found is None:
            continue
        # A second culprit, or a second group, is told in the report.
        label = label if found["label"].isspace() else found["label"]
        said.setdefault(label, []).append(found["text"])
    fields["headline"] = " ".join(said["headline"])
    fields |= _culprit(said.get("culprit", []))
    _add_ranks(fields, said, block, parts)
    for name in ("cause", "report"):
        if name in said:
            fields[name] = " ".join(said[name])
    parts.add_event(
        RawEvent(
            kind=KIND,
            text=mask_text(block.lines[0])[:2000],
            file=block.context.file,
            line=block.number,
            moment=block.first.moment,
            fields={name: mask_text(value)[:1000] for name, value in fields.items() if value},
        )
    )


def _culprit(said: list[str]) -> dict[str, str]:
    """Who and where; where is what stands up to the end of its line, the rest tells why."""
    found = _CULPRIT.match(said[0]) if said else None
    if found is None:
        return {}
    fields = {name: value for name, value in found.groupdict().items() if value}
    # A place is wrapped at a bracket or at `<`; a sentence on why begins with a name.
    rest = said[1:]
    while rest and rest[0][:1] in "(<|":
        fields["where"] = f"{fields['where']} {rest.pop(0)}"
    return fields | {"why": " ".join(rest)}


def _add_ranks(
    fields: dict[str, str], said: dict[str, list[str]], block: Block, parts: Parts
) -> None:
    """Who took part: the culprit, those that waited, and how many ranks there are."""
    by = (f"the watchdog's summary in {block.context.file}",)
    rank = re.fullmatch(r"rank (\d{1,6})", fields.get("culprit", ""))
    if rank:
        pid = fields.get("culprit_pid")
        parts.add_identity(
            Who(
                pid=int(pid) if pid else None,
                rank=int(rank[1]),
                host=fields.get("culprit_host", ""),
                role="trainer",
                by=by,
            )
        )
    for line in said.get("waiting", []):
        found = _WAITING.match(line)
        for waiting in _ranks(found["ranks"]) if found else ():
            parts.add_identity(Who(rank=waiting, role="trainer", by=by))
    size = _OF_RANKS.search(fields["headline"])
    if size:
        parts.world_sizes.append((int(size["size"]), block.context.file))


def _ranks(text: str) -> Iterator[int]:
    """The numbers of `0-2, 4`."""
    for first, last in re.findall(r"(\d{1,6})(?:-(\d{1,6}))?", text):
        yield from range(int(first), min(int(last or first), int(first) + _MAX_RANKS) + 1)
