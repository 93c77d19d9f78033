"""The arguments of the run, read off the command lines of its processes."""

from __future__ import annotations

from collections.abc import Sequence

from watchdog.discovery.jobs import Job, Member
from watchdog.evidence import Flag
from watchdog.intake.documents.launch_script import program_of
from watchdog.intake.flags import flags_of_argv

# Passed by launchers to each process, and different in each: nobody chose them.
_OWN = frozenset(
    {"rank", "local_rank", "fds", "engine_index", "listen_fd", "parent_pid", "port", "node_ip"}
)


def flags_of(job: Job) -> tuple[Flag, ...]:
    """The flags of the driver, else of the lowest rank, then those of the engines; by name.

    The first process that has a flag counts: engines repeat flags of the run with their own
    values.
    """
    order = [*job.of("driver"), *job.of("trainer"), *job.of("launcher"), *job.of("engine")]
    found: dict[str, Flag] = {}
    for member in _different(order):
        for flag in _flags(member):
            if flag.name not in _OWN:
                found.setdefault(flag.name, flag)
    return tuple(found[name] for name in sorted(found))


def _different(members: Sequence[Member]) -> list[Member]:
    """One for each role and program: the ranks of a job share their flags."""
    kinds = {(m.role, m.seen.program): m for m in reversed(members) if not m.seen.has_title}
    return [member for member in members if member in kinds.values()]


def _flags(member: Member) -> list[Flag]:
    words = [word for word in member.seen.words if word]
    _, rest = program_of(words)
    origin = f"command line of {member.key} (pid {member.seen.pid})"
    return list(flags_of_argv(rest, origin))
