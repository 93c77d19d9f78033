"""The set-up of a communicator: it ends when every member has come, and nobody else may.

A set-up is no collective of its members' order, although the first broadcast or all-gather of a
group is where it happens: next to it, a rank that waits in another group's barrier is in no
*different* collective. Members of an update group are engines as well as trainers.
"""

from __future__ import annotations

from watchdog.evidence import LogEvent, Process
from watchdog.situation import Situation
from watchdog.verdict.duration import LEGAL_RPC_S, lasted
from watchdog.verdict.groups import phrase
from watchdog.verdict.judgement import Judgement, accused, name_of, names_of, waiting_for
from watchdog.waits.stack import SETTING_UP


def in_set_up(situation: Situation, among: tuple[Process, ...]) -> tuple[Process, ...]:
    """Those that build a group, or the communicator of its first collective."""
    waits = situation.waits
    return tuple(
        p for p in among if waits[p.key].kind == "rendezvous" or waits[p.key].note == SETTING_UP
    )


def kept_groups(situation: Situation) -> tuple[tuple[LogEvent, Process], ...]:
    """Who said that it has the group already, and is not where the others build it."""
    inside = in_set_up(situation, situation.evidence.processes)
    apart = [p for p in situation.evidence.processes if p not in inside] if inside else []
    said = [e for e in situation.evidence.log_events if e.kind == "group_kept"]
    return tuple((e, p) for e in said for p in apart if _wrote(e, p))


def _wrote(event: LogEvent, process: Process) -> bool:
    if event.pid is not None:
        return event.pid == process.pid and event.host in (None, process.host)
    if event.engine is not None:
        return event.engine == process.engine and process.role == "engine"
    return event.rank is not None and process.role == "trainer" and event.rank == process.rank


def absent_members(situation: Situation) -> tuple[Process, ...]:
    """Who should come to the set-up and is seen elsewhere: by its own line, or its idle stack.

    An idle engine is meant only where other engines are in the set-up.
    """
    kept = tuple(dict.fromkeys(p.key for _, p in kept_groups(situation)))
    if kept:
        return tuple(situation.processes[key] for key in kept)
    inside = in_set_up(situation, situation.engines)
    joining = {p.engine for p in inside}
    idle = situation.doing("idle", among=situation.engines)
    return tuple(p for p in idle if inside and p.engine is not None and p.engine not in joining)


def _log_goes_on(situation: Situation) -> bool:
    """Whether the logs tell of a time long after the last line of a set-up."""
    times = [e.time_s for e in situation.evidence.log_events if e.time_s is not None]
    begun = [
        e.time_s
        for e in situation.evidence.log_events
        if e.kind in ("group_join", "group_kept") and e.time_s is not None
    ]
    return bool(begun) and max(times) - max(begun) > LEGAL_RPC_S


def incomplete(situation: Situation) -> Judgement | None:
    """A member that does not come holds up those in the set-up, and all who wait behind them."""
    absent = absent_members(situation)
    if not absent or not (lasted(situation) or _log_goes_on(situation)):
        return None
    inside = in_set_up(situation, situation.evidence.processes)
    said = {p.key: e.text.strip().splitlines()[0][:160] for e, p in kept_groups(situation)}
    culprits = tuple(
        accused(
            situation,
            p,
            f"{name_of(p)} did not come to the set-up of the others"
            + (f": `{said[p.key]}`" if p.key in said else ""),
        )
        for p in absent
    )
    waiting = tuple(p for p in situation.trainers if p not in inside and p not in absent)
    behind = situation.doing("collective", among=waiting)
    chain = [waiting_for(inside, "the set-up of a group", names_of(absent))]
    if behind:
        operation = situation.wait(behind[0]).operation
        chain.insert(0, waiting_for(behind, operation, names_of(inside)))
    reason = (
        f"{names_of(inside)} set up a group to which {names_of(absent)} did not come: "
        f"{phrase(situation.wait(absent[0]))}."
    )
    return Judgement("hung", reason, culprits, tuple(chain))
