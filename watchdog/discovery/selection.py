"""The one job that is meant: by `--pid`, by `--match`, or because there is no other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from watchdog.counting import counted
from watchdog.discovery.jobs import Job, Member
from watchdog.discovery.processes import Seen, ancestors
from watchdog.discovery.roles import is_helper, is_watcher
from watchdog.errors import UnusableInputError


class NoJobError(UnusableInputError):
    """No process of a job was found, or none of those that were asked for."""

    help_text = (
        "Ranks are found by RANK and WORLD_SIZE in their environment, Ray workers and engines by "
        "their titles. Run this where the processes are (inside the same container, as the same "
        "user or root), or name them: `miles-watchdog attach --pid PID [--pid PID …]`."
    )


class SeveralJobsError(UnusableInputError):
    """More than one job runs here. The message lists them."""

    help_text = "Choose one: `--pid` of one of its processes, or `--match` a part of its name."


def selected(
    jobs: Sequence[Job], everything: Mapping[int, Seen], pids: Collection[int], match: str
) -> Job:
    """The job that is meant.

    Args:
        jobs: All jobs of this host.
        everything: All processes of this host.
        pids: Processes that it must contain; of what is no known job, the job itself.
        match: Text that its name or a command line of it must contain; "" for any.

    Raises:
        NoJobError: There is none; the message says why.
        SeveralJobsError: There are several; the message lists them.
    """
    if pids:
        return _with_pids(jobs, everything, pids)
    training = [job for job in jobs if job.of("trainer")] or list(jobs)
    chosen = [job for job in training if match in job.name or _mentions(job, match)]
    if match and not chosen:
        return _by_text(everything, match)
    if not chosen:
        refused = sum(one.environ is None and bool(one.words) for one in everything.values())
        also = f"; the environment of {refused} processes may not be read" if refused else ""
        raise NoJobError(f"no rank, Ray worker or engine runs on this node{also}")
    if len(chosen) > 1:
        listed = "\n".join(f"  {described(job)}" for job in chosen)
        raise SeveralJobsError(f"{len(chosen)} jobs run on this node:\n{listed}")
    return chosen[0]


def described(job: Job) -> str:
    """One line for people: name, size, a pid to choose it by, and its command."""
    trainers, engines = job.of("trainer"), job.of("engine")
    first = (trainers or job.members)[0].seen
    parts = [counted(len(trainers), "rank")] if trainers else []
    parts += [counted(len(engines), "engine")] if engines else []
    command = " ".join(first.line.split())[:100]
    return f"{job.name}: {', '.join(parts)}, --pid {first.pid}: {command}"


def _with_pids(jobs: Sequence[Job], everything: Mapping[int, Seen], pids: Collection[int]) -> Job:
    missing = [pid for pid in pids if pid not in everything]
    if missing:
        raise NoJobError(f"no process {', '.join(map(str, missing))} on this node")
    # An init or a shell is of no job: what it started is what is meant.
    holding = [job for job in jobs if job.pids & set(pids)] or [
        job for job in jobs if _started(pids, job, everything)
    ]
    if len(holding) > 1:
        listed = "\n".join(f"  {described(job)}" for job in holding)
        raise SeveralJobsError(f"these processes are of {len(holding)} jobs:\n{listed}")
    strangers = [everything[pid] for pid in pids if not any(pid in job.pids for job in jobs)]
    named = tuple(Member(one, "other", ("named with --pid",)) for one in strangers)
    if holding:
        return Job(holding[0].name, (*holding[0].members, *named))
    return _unknown_job(f"pid {min(pids)}", everything, [one.pid for one in strangers], "--pid")


def _started(pids: Collection[int], job: Job, everything: Mapping[int, Seen]) -> bool:
    by_no_python = {pid for pid in pids if not everything[pid].is_python}
    return any(by_no_python & set(ancestors(everything, pid)) for pid in job.pids)


def _by_text(everything: Mapping[int, Seen], match: str) -> Job:
    pids = [
        pid
        for pid, one in everything.items()
        if match in one.line and one.is_python and not is_watcher(one)
    ]
    if not pids:
        raise NoJobError(f"no job and no Python process matches {match!r}")
    return _unknown_job(match, everything, pids, "--match")


def _unknown_job(
    name: str, everything: Mapping[int, Seen], pids: Sequence[int], option: str
) -> Job:
    """Processes of no known kind: the named ones and what they started.

    Several of them that run the same program are taken for ranks, in the order of their start;
    what only descends from a named process must have one parent, as the ranks of a launcher do.

    Raises:
        NoJobError: None of them can be a rank: an init or a shell, and strangers below it.
    """
    chosen = [
        one
        for pid, one in everything.items()
        if pid in pids or (set(pids) & set(ancestors(everything, pid)) and one.is_python)
    ]
    chosen = [one for one in chosen if one.pid in pids or not is_helper(one)]
    kinds: dict[tuple[str, int], list[Seen]] = {}
    for one in chosen:
        parent = 0 if one.pid in pids else one.parent
        program = one.program or " ".join(one.words[1:4])
        kinds.setdefault((program, parent), []).append(one)
    alike = max(kinds.values(), key=len)
    ranks = {one.pid for one in alike} if len(alike) > 1 or len(chosen) == 1 else set()
    named = [one for one in chosen if one.pid in pids]
    if not any(one.is_python for one in named) and not (ranks - set(pids)):
        what = ", ".join(f"{one.pid} ({one.name or ' '.join(one.words[:1])})" for one in named[:4])
        raise NoJobError(f"{what}: no Python process and none that started the ranks of a job")
    members = [
        Member(one, "trainer", (f"named with {option}",))
        if one.pid in ranks
        else Member(one, "other", (f"named with {option}, or started by it",))
        for one in chosen
    ]
    return Job(name, tuple(sorted(members, key=lambda m: (m.role != "trainer", m.seen.pid))))


def _mentions(job: Job, match: str) -> bool:
    return any(match in member.seen.line for member in job.members)
