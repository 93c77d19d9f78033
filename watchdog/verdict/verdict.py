"""The judges in order, and the completion of what they say."""

from __future__ import annotations

from collections.abc import Callable

from watchdog.findings import Group, Verdict
from watchdog.situation import Situation
from watchdog.verdict import (
    actors,
    counted,
    deaths,
    driver,
    ended,
    engines,
    errors,
    file_locks,
    launch,
    long_wait,
    lost_peer,
    network,
    numbered,
    odd_ranks,
    own_words,
    peers,
    progress,
    set_up,
    silent_hosts,
    spoken,
)
from watchdog.verdict.groups import groups_of
from watchdog.verdict.judgement import Judgement, unaccounted

JUDGES: tuple[Callable[[Situation], Judgement | None], ...] = (
    ended.ended_meanwhile,
    own_words.told_by_watchdog,
    deaths.dead_member,
    numbered.detected_by_torch,
    errors.earliest_error,
    launch.never_started,
    launch.never_granted,
    driver.failed_driver,
    progress.finished,
    odd_ranks.blocked_for_sure,
    progress.healthy,
    counted.counting,
    progress.moving,
    actors.deaf_actor,
    actors.queued_call,
    network.unreachable_address,
    network.socket_nobody_binds,
    engines.stuck_engine,
    set_up.incomplete,
    file_locks.stale_file_lock,
    silent_hosts.silent_host,
    numbered.different_at_one_number,
    peers.lagging,
    peers.absent_from_store,
    odd_ranks.odd_rank,
    peers.different_collectives,
    spoken.missing_by_name,
    peers.same_collective,
    lost_peer.peer_ended,
    spoken.behind_by_count,
    long_wait.everybody_waits,
)
"""A job that has ended has nobody who holds it up. A dead member explains every other frame; an
error that came first explains every wait; what the kernel says is sure; what moves is not
hung; then the odd one out, and the end of its chain."""


def verdict_of(situation: Situation) -> Verdict:
    """Judge the situation, once: the first judge that can say something decides."""
    if "verdict" not in situation.memo:
        situation.memo["verdict"] = _judged(situation)
    verdict: Verdict = situation.memo["verdict"]
    return verdict


def _judged(situation: Situation) -> Verdict:
    judgement = next((j for j in (judge(situation) for judge in JUDGES) if j is not None), None)
    if judgement is None:
        judgement = Judgement("unknown", _why_unknown(situation))
    culprits = {culprit.process for culprit in judgement.culprits}
    groups: tuple[Group, ...] = groups_of(situation)
    return Verdict(
        state=judgement.state,
        reason=judgement.reason,
        culprits=judgement.culprits,
        groups=tuple(sorted(groups, key=lambda group: not culprits & set(group.processes))),
        chain=judgement.chain,
        unaccounted=unaccounted(situation),
        progress=judgement.progress,
    )


def _why_unknown(situation: Situation) -> str:
    progress_so_far = counted.ordinary_progress(situation)
    if progress_so_far:
        return progress_so_far
    if not situation.evidence.processes:
        return "No process is described in the evidence."
    missing = len(unaccounted(situation))
    if missing:
        left_out = "1 rank is" if missing == 1 else f"{missing} ranks are"
        return f"What is known of the processes is legitimate, and {left_out} not described."
    trainers = [p for p in situation.evidence.processes if p.role == "trainer"]
    seen = [p for p in trainers if p.stacks]
    if not any(p.stacks or p.position for p in situation.evidence.processes):
        return "No stack is in the evidence, and what was logged does not tell who waits for whom."
    if len(seen) > 1 and all(p.rank is None for p in seen):
        return "Which rank each stack is of is not known, so nobody can be named."
    return "No process does anything that holds the others up, as far as the evidence shows."
