"""Which causes a verdict admits: the end of the order in which to look."""

from __future__ import annotations

import re
from dataclasses import replace

from watchdog.findings import CauseClass, Finding, State

STRENGTH = {"confirmed": 0, "likely": 1, "possible": 2}
"""Order of the words of confidence, strongest first."""

_CONSEQUENCES: frozenset[CauseClass] = frozenset(
    {
        "rank_subset_collective",
        "collective_mismatch",
        "group_rendezvous",
        "nccl_transport",
        "slow_not_hung",
        "storage_slow",
        "lock_deadlock",
    }
)
"""Where something died or failed first, waits of these kinds follow from it."""

_OF_MEETING: frozenset[CauseClass] = frozenset(
    {"rank_subset_collective", "collective_mismatch", "group_rendezvous", "nccl_transport"}
)
"""Who does not meet whom, and where: behind a member that cannot run, that says nothing."""

_DRASTIC = re.compile(r"\b[Ee]nd (it|the run)\b|^Restart\b|\b[Kk]ill\b")
"""Sentences of a remedy that cost the run or a part of it."""

_CANNOT_RUN = "member-stopped"

_OF_SLOW: frozenset[CauseClass] = frozenset({"slow_not_hung", "storage_slow"})


def admitted(state: State, findings: list[Finding], first_error: str = "") -> list[Finding]:
    """The findings that can stand beside this verdict, weakened where it does not bear them.

    A dead member or an error explains every wait: nothing structural is claimed beside it, but
    what explains the error itself (`first_error`, its line as supports quote it) stays. Nor is
    it beside a stopped member, for whom the others wait wherever they happen to be. What
    moves is not hung. Where the verdict is that one cannot tell, no cause is more than possible,
    and a healthy run has none.
    """
    cannot_run = any(f.rule == _CANNOT_RUN and f.confidence == "confirmed" for f in findings)
    kept = []
    for finding in findings:
        if state == "healthy":
            continue
        explains = bool(first_error) and any(first_error in line for line in finding.supports)
        if cannot_run and finding.cause_class in _OF_MEETING:
            continue
        if state == "crashed" and finding.cause_class in _CONSEQUENCES and not explains:
            continue
        if state == "slow" and finding.cause_class not in _OF_SLOW:
            finding = _weakened(finding)
        if state == "hung" and finding.cause_class == "slow_not_hung":
            continue
        if state == "unknown":
            finding = _weakened(finding)
        kept.append(finding)
    return kept


def yielding(findings: list[Finding], general: set[str]) -> list[Finding]:
    """The findings, general ones weakened where a specific one is at least as strong."""
    specific = [STRENGTH[f.confidence] for f in findings if f.rule not in general]
    best = min(specific, default=STRENGTH["possible"])
    return [
        _weakened(f) if f.rule in general and best <= STRENGTH[f.confidence] else f
        for f in findings
    ]


def cautious(finding: Finding, to_collect: tuple[str, ...]) -> Finding:
    """The finding; what to do about one that is only possible begins with what would settle it.

    Nobody ends a run, or restarts a part of it, for a cause that nothing shows.

    Args:
        finding: Any finding, its remedy complete.
        to_collect: What would settle what is open, most telling first.
    """
    if finding.confidence != "possible" or not finding.remedy:
        return finding
    # A sentence ends before the next capital, so that `--flag.name` and `e.g. x` are none.
    sentences = re.split(r"(?<=\.)\s+(?=[A-Z])", finding.remedy)
    mild = " ".join(one for one in sentences if not _DRASTIC.search(one))
    settle = _to_settle(to_collect)
    if not settle and not mild:
        return replace(finding, remedy="Only possible: no reason to end anything.")
    then = f" If it is this: {mild}" if mild else ""
    return replace(finding, remedy=f"Only possible{settle}.{then}")


def _to_settle(to_collect: tuple[str, ...]) -> str:
    if not to_collect:
        return ""
    settle = to_collect[0].rstrip(".")
    settle = settle[:1].lower() + settle[1:] if settle[1:2].islower() else settle
    return f"; to settle it first: {settle}"


def _weakened(finding: Finding) -> Finding:
    return replace(finding, confidence="possible")
