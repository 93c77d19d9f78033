"""The sentences that every format shares, so that they cannot disagree.

The text is not yet safe to show: each format escapes it in its own way (`printable`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from watchdog.evidence import Evidence, Gap, LogEvent, Process, Stall, ThreadStack
from watchdog.findings import Culprit, Diagnosis, Finding, Group, Verdict
from watchdog.reports.incident_info import IncidentInfo
from watchdog.reports.ranks import ranks_label
from watchdog.run.stall_ends import STALL_ENDS, StallEnd

_FILLING = frozenset({"a", "an", "are", "in", "is", "it", "of", "the", "their", "to"})
_NEGATIONS = frozenset({"no", "nobody", "none", "not", "nothing", "never"})
_ENGINE = re.compile(r"engine \d{1,6}")
_MAX_CLAUSE_CHARS = 90
_MAX_ERRORS = 2
_OWN_THREAD = "weight-sync-watchdog"


def headline(evidence: Evidence, diagnosis: Diagnosis) -> str:
    """One sentence: the state, who holds up how many, and in what."""
    verdict = diagnosis.verdict
    state = verdict.state.upper()
    stall = f" in {evidence.stall.section}" if evidence.stall else ""
    if not verdict.culprits:
        return {
            "healthy": "HEALTHY: nothing is wrong",
            "unknown": f"UNKNOWN: {_why_unknown(verdict)}",
        }.get(verdict.state, f"{state}{stall}: nobody in particular can be named")
    who = culprits_label(verdict.culprits)
    held = len({rank for group in waiting_groups(diagnosis) for rank in group.ranks})
    if verdict.state == "healthy":
        return f"HEALTHY: nothing is wrong; {who} will go on"
    if not held:
        be = "are" if len(verdict.culprits) > 1 else "is"
        alone = {"hung": f"{be} stuck", "slow": f"{be} still working", "crashed": "failed first"}
        return f"{state}: {who} {alone.get(verdict.state, f'{be} named')}{stall}"
    total = f" of {evidence.world_size}" if evidence.world_size else ""
    noun = "rank" if held == 1 and not total else "ranks"
    verb = "hold" if len(verdict.culprits) > 1 else "holds"
    return f"{state}: {who} {verb} up {held}{total} {noun}{stall}"


def _why_unknown(verdict: Verdict) -> str:
    """The first clause of the reason, where it is short enough for a headline."""
    clause = re.split(r"[.:;](?=\s|$)", verdict.reason, maxsplit=1)[0]
    if not 0 < len(clause) <= _MAX_CLAUSE_CHARS:
        return "the evidence does not tell who holds the job up"
    return clause if clause[1:2].isupper() else clause[:1].lower() + clause[1:]


def headline_of_now(evidence: Evidence, diagnosis: Diagnosis, incident: IncidentInfo | None) -> str:
    """The headline, and how the stall came to its end where it did."""
    text = headline(evidence, diagnosis)
    for end in STALL_ENDS:
        if (after_s := took_s(incident, end)) is not None:
            text = end.headline(text, after_s)
    return text


def took_s(incident: IncidentInfo | None, end: StallEnd) -> float | None:
    """After what time the incident ended in this way (s), `None` where it did not."""
    return None if incident is None else getattr(incident, end.key)


def stall_end_lines(incident: IncidentInfo | None) -> list[str]:
    """How the stall came to its end, as markdown, a line for each way."""
    times = [(end, took_s(incident, end)) for end in STALL_ENDS]
    return [end.markdown(after_s) for end, after_s in times if after_s is not None]


def untold_errors(evidence: Evidence, diagnosis: Diagnosis) -> list[str]:
    """The first exceptions of the logs that neither the verdict nor a cause has quoted already."""
    verdict = diagnosis.verdict
    told = [verdict.reason, *(f"{c.where} {c.why}" for c in verdict.culprits)]
    told += [text for cause in diagnosis.causes for text in (cause.summary, *cause.supports)]
    found: dict[str, LogEvent] = {}
    for event in evidence.log_events:
        said = event.text.split("\n", 1)[0].strip()
        if event.kind == "traceback" and said and not any(said[:80] in text for text in told):
            found.setdefault(said, event)
    return [f"{said} ({e.file}:{e.line})" for said, e in list(found.items())[:_MAX_ERRORS]]


def culprits_label(culprits: Sequence[Culprit]) -> str:
    """`rank 3`, `ranks 1-2`, `engine 0`, `ranks 1-2 and driver`."""
    ranks = [c.rank for c in culprits if c.rank is not None]
    others = list(dict.fromkeys(c.process for c in culprits if c.rank is None))
    parts = [ranks_label(ranks)] if ranks else []
    parts += others[:3]
    if len(others) > 3:
        parts.append(f"{len(others) - 3} more")
    return " and ".join(parts)


def culprit_label(culprit: Culprit) -> str:
    """`rank 3 (pid 4711 on node-a)`."""
    pid = f"pid {culprit.pid}" if culprit.pid is not None else ""
    place = " on ".join(part for part in (pid, culprit.host) if part)
    return f"{culprit.process} ({place})" if place else culprit.process


def merged_culprits(culprits: Sequence[Culprit]) -> list[tuple[str, Culprit]]:
    """Culprits at the same place told together: label and one that stands for all."""
    by_place: dict[tuple[str, str], list[Culprit]] = {}
    for culprit in culprits:
        by_place.setdefault((culprit.where, culprit.why), []).append(culprit)
    return [
        (culprit_label(same[0]) if len(same) == 1 else culprits_label(same), same[0])
        for same in by_place.values()
    ]


def new_reason(verdict: Verdict) -> str:
    """The verdict's reason, "" where what is said of the culprits says it already.

    It does where hardly a word of it is new, and no new one is a number or a negation.
    """
    told = [f"{c.process} {c.where} {c.why}" for c in verdict.culprits]
    if verdict.state == "unknown" and not told:
        told = [_why_unknown(verdict)]
    said = {word for text in (*told, culprits_label(verdict.culprits)) for word in _words(text)}
    words = _words(verdict.reason)
    new = [word for word in words if word not in said]
    is_telling = any(word in _NEGATIONS or any(map(str.isdigit, word)) for word in new)
    return verdict.reason if is_telling or 3 * len(new) > len(words) else ""


def new_progress(verdict: Verdict) -> str:
    """How fast it goes, "" where what is said of the culprits says it already."""
    told = verdict.progress.rstrip(".")
    return "" if any(told in culprit.why for culprit in verdict.culprits) else verdict.progress


def _words(text: str) -> list[str]:
    words = (word.strip("./:") for word in re.findall(r"[\w./:-]+", text.lower()))
    return [word for word in words if word and word not in _FILLING]


def cause_label(cause: Finding) -> str:
    """`missing_backup, confirmed`."""
    return f"{cause.cause_class}, {cause.confidence}"


def new_supports(causes: Sequence[Finding]) -> Iterator[tuple[Finding, list[str]]]:
    """Each cause with what speaks for it; what was told of an earlier one is only counted."""
    told: set[str] = set()
    for cause in causes:
        new = [line for line in cause.supports if line not in told]
        told.update(new)
        left = len(cause.supports) - len(new)
        yield cause, [*new, *([f"{left} of the above"] if left else [])]


def waiting_groups(diagnosis: Diagnosis) -> list[Group]:
    """The groups without a culprit in them, as the verdict orders them.

    Without launchers: they wait for the end of the job all the time, which says nothing.
    """
    guilty = {culprit.process for culprit in diagnosis.verdict.culprits}
    return [
        group
        for group in diagnosis.verdict.groups
        if guilty.isdisjoint(group.processes)
        and not all(key.startswith("launcher") for key in group.processes)
    ]


def group_label(group: Group) -> str:
    """`ranks 0-2, 4`, and the processes that have no rank by their keys."""
    others = [key for key in group.processes if not key.startswith("rank ")]
    engines = [key for key in others if _ENGINE.fullmatch(key)]
    rest = [key for key in others if key not in engines]
    if len(rest) > 3:
        rest = [*rest[:2], f"{len(rest) - 2} more"]
    numbers = [int(key.removeprefix("engine ")) for key in engines]
    labels = (ranks_label(group.ranks), ranks_label(numbers, "engine"), *rest)
    return ", ".join(part for part in labels if part)


def group_words(group: Group) -> str:
    """What the group does, where, and whether two samples differ."""
    moving = {True: " (moving)", False: " (not moving)", None: ""}[group.moving]
    where = short_where(group.where) if group.where not in group.doing else ""
    return f"{_at_place(group.doing, where)}{moving}"


def _at_place(doing: str, where: str) -> str:
    """`waiting in barrier < update`: a call that ends the one and begins the other once."""
    first = where.partition(" ")[0]
    told = doing[doing.find("(") + 1 : -1] if doing.endswith(")") else ""
    if told and where.startswith(f"{told}, "):
        return f"{doing}{where.removeprefix(told)}"
    if first and doing.endswith(f" {first}"):
        return doing.removesuffix(first) + where
    if first and told == first:
        return f"{doing.removesuffix(f' ({first})')}: {where}"
    return f"{doing}, {where}" if where else doing


def short_where(where: str) -> str:
    """The innermost calls of a place `a (file:1) < b < c < d`, as `a (file:1) < b < …`."""
    calls = where.split(" < ")
    return where if len(calls) <= 3 else " < ".join([*calls[:2], "…"])


def stall_words(stall: Stall) -> str:
    """`weight_sync waited 5.2 s, limit 5 s (set)`."""
    reason = f" ({stall.deadline_reason})" if stall.deadline_reason else ""
    waited, limit = seconds(stall.waited_s), seconds(stall.deadline_s)
    return f"{stall.section} waited {waited}, limit {limit}{reason}"


def seconds(value_s: float) -> str:
    """A duration as a person would say it: `0.4 s`, `5.2 s`, `301 s`, `35 min`."""
    if value_s >= 600:
        return f"{value_s / 60:.0f} min"
    return f"{value_s:.0f} s" if value_s >= 10 else f"{value_s:.1f} s"


def size(num_bytes: int) -> str:
    """Bytes with a binary unit: `512 B`, `1.5 MiB`."""
    value = float(num_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def no_cause_words(diagnosis: Diagnosis) -> str:
    """Why no cause stands in the report."""
    if diagnosis.verdict.state == "healthy":
        return "nothing is wrong"
    ruled_out = len(diagnosis.refuted)
    also = f"; {ruled_out} looked likely and {'was' if ruled_out == 1 else 'were'} ruled out"
    return f"no known cause fits{also if ruled_out else ''}"


def report_path(incident: IncidentInfo | None) -> str:
    """Path of the report for people, "" when none was written."""
    return os.path.join(incident.folder, "report.md") if incident and incident.folder else ""


def all_gaps(evidence: Evidence) -> list[tuple[str, Gap]]:
    """Every gap once, with the processes that share it: `("ranks 0-3", gap)`.

    A gap that names its process, `memory of rank 3`, is the same as another's where nothing
    but that name differs; it is then told as `memory`.
    """
    owners: dict[tuple[str, str, str], list[Process]] = {}
    for process in evidence.processes:
        name = re.compile(rf"(?: of)? {re.escape(process.key)}\b(?:'s)?")
        for gap in process.gaps:
            what = name.sub("", gap.what) or gap.what
            owners.setdefault((what, gap.why, gap.remedy), []).append(process)
    shared = [(processes_label(who), Gap(*key)) for key, who in owners.items()]
    return [("", gap) for gap in evidence.gaps] + shared


def processes_label(processes: Iterable[Process]) -> str:
    """Ranks folded, the others by key."""
    known = list(processes)
    ranks = [process.rank for process in known if process.rank is not None]
    others = [process.key for process in known if process.rank is None]
    return ", ".join(part for part in (ranks_label(ranks), *others[:5]) if part)


def telling_threads(process: Process, where: str) -> tuple[ThreadStack, ...]:
    """Threads of the latest sample, the one that stands in `where` first."""
    if not process.stacks:
        return ()
    known = [thread for thread in process.stacks[-1].threads if thread.frames]
    # Our own thread waits, as it should; it is told only where nothing else was seen.
    threads = [thread for thread in known if thread.name != _OWN_THREAD] or known
    return tuple(sorted(threads, key=lambda thread: _telling_order(thread, where)))


def _telling_order(thread: ThreadStack, where: str) -> tuple[bool, bool]:
    return not _stands_in(thread, where), thread.name != "MainThread"


def _stands_in(thread: ThreadStack, where: str) -> bool:
    names = {frame.function.rsplit(".", 1)[-1] for frame in thread.frames[:12]}
    return any(f"{name} (" in where or where.endswith(name) for name in names if name)
