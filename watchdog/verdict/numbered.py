"""Ranks that say in the log to have entered another collective than the others at one number."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from watchdog.evidence import LogEvent, Process
from watchdog.findings import Culprit, State
from watchdog.situation import Situation
from watchdog.verdict.errors import fatal_error
from watchdog.verdict.judgement import Judgement, accused, rank_range
from watchdog.waits.process import needs_equal_input

_GUID = re.compile(r"PG GUID (?P<guid>[^\s(\]]+)")
_FINGERPRINTS = re.compile(
    r"Rank (?P<rank>\d{1,6}) is running (?:collective|inconsistent collective): "
    r"CollectiveFingerPrint\((?:SequenceNumber=(?P<seq>\d+), ?)?OpType=(?P<op>\w+)"
    r"(?:, ?TensorShape=\[(?P<shape>[\d, \[\]]*)\])?"
)


@dataclass(frozen=True)
class Parties:
    """What the ranks of one group entered at one number.

    Attributes:
        group: As the log names it, "" for an unknown one.
        number: Sequence number in the group, `None` where it is not told.
        entered: Rank to what it entered: operation, and size where all must bring the same.
        lines: Rank to the line that says so.
    """

    group: str
    number: int | None
    entered: dict[int, str]
    lines: dict[int, LogEvent]

    @property
    def minority(self) -> tuple[int, ...]:
        """Ranks of the rarer thing, ascending; empty where neither is rarer."""
        counts = Counter(self.entered.values()).most_common()
        if len(counts) < 2 or counts[0][1] == counts[1][1]:
            return ()
        return tuple(sorted(r for r, what in self.entered.items() if what != counts[0][0]))

    @property
    def described(self) -> list[str]:
        """One line a thing that was entered, with who entered it."""
        number = "" if self.number is None else f"number {self.number}"
        head = " of ".join(
            part for part in (number, f"group {self.group}" * bool(self.group)) if part
        )
        found = []
        for what in sorted(set(self.entered.values())):
            ranks = sorted(rank for rank, own in self.entered.items() if own == what)
            found.append(f"{head + ': ' if head else ''}{rank_range(ranks)} in {what}")
        return found


def different(situation: Situation) -> Parties | None:
    """The first group of which ranks entered different collectives at one number, or `None`."""
    if "numbered" not in situation.memo:
        found = (*_by_fingerprints(situation), *_by_time_outs(situation))
        split = (parties for parties in found if len(set(parties.entered.values())) > 1)
        situation.memo["numbered"] = next(split, None)
    parties: Parties | None = situation.memo["numbered"]
    return parties


def _by_fingerprints(situation: Situation) -> list[Parties]:
    """`TORCH_DISTRIBUTED_DEBUG=DETAIL` compares what ranks entered, and each names two of them."""
    entered: dict[int, str] = {}
    lines: dict[int, LogEvent] = {}
    number = None
    for event in situation.log("CollectiveFingerPrint"):
        for told in _FINGERPRINTS.finditer(event.text):
            rank = int(told["rank"])
            what = f"{told['op']} of [{told['shape'] or ''}]"
            number = int(told["seq"]) if told["seq"] else number
            entered.setdefault(rank, what)
            lines.setdefault(rank, event)
    return [Parties("", number, entered, lines)]


def _by_time_outs(situation: Situation) -> list[Parties]:
    """Lines of NCCL's watchdog; the group stands in the next line of the same rank, if at all."""
    groups = _groups(situation)
    found: dict[tuple[str, int], Parties] = {}
    for event in situation.evidence.log_events:
        seq = event.fields.get("seq", "")
        if event.kind != "nccl_watchdog_timeout" or not seq.isdigit() or event.rank is None:
            continue
        own = _GUID.search(event.text)
        group = own["guid"] if own else groups.get((event.rank, seq), "")
        key = (group, int(seq))
        parties = found.setdefault(key, Parties(group, int(seq), {}, {}))
        parties.entered.setdefault(event.rank, _what(event))
        parties.lines.setdefault(event.rank, event)
    return list(found.values())


def _groups(situation: Situation) -> dict[tuple[int, str], str]:
    """Rank and number to the unique name of the group that the rank's status line gives."""
    found: dict[tuple[int, str], str] = {}
    for event in situation.evidence.log_events:
        guid = _GUID.search(event.text) if event.kind == "nccl_work_status" else None
        if guid and event.rank is not None:
            found[event.rank, event.fields.get("seq", "")] = guid["guid"]
    return found


def _what(event: LogEvent) -> str:
    op, size = event.fields.get("op", "?"), event.fields.get("numel_in", "")
    # Of the others, some ranks may rightly bring more.
    return f"{op} of {size} elements" if size and needs_equal_input(op) else op


def detected_by_torch(situation: Situation) -> Judgement | None:
    """The same where torch compared them itself, and ended all with an error."""
    parties, error = different(situation), fatal_error(situation)
    if parties is None or error is None or "CollectiveFingerPrint" not in error.text:
        return None
    return _judged(situation, parties, "crashed")


def different_at_one_number(situation: Situation) -> Judgement | None:
    """Who entered something else than most others, as their own lines say."""
    parties = different(situation)
    if parties is None or not parties.minority:
        return None
    return _judged(situation, parties, "hung")


def _where(situation: Situation, process: Process, entered: str) -> str:
    return f"{situation.wait(process).where}: {entered}" if process.stacks else entered


def _judged(situation: Situation, parties: Parties, state: State) -> Judgement:
    told = "; ".join(parties.described)
    why = f"entered another collective than most others: {told}"
    culprits = tuple(
        accused(situation, process, why, _where(situation, process, parties.entered[rank]))
        if (process := situation.trainer(rank)) is not None
        else Culprit(f"rank {rank}", parties.entered[rank], why, rank=rank)
        for rank in parties.minority
    )
    chain = (f"the others wait for {rank_range(list(parties.minority))}",) if culprits else ()
    return Judgement(state, f"Ranks are in different collectives: {told}.", culprits, chain)
