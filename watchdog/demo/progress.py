"""What a silent job is doing, in words for somebody who waits."""

from __future__ import annotations

from collections.abc import Iterable

_UP = "all ranks are up"


def progress(commands: Iterable[str], lines: Iterable[str]) -> str:
    """One phrase: what is being started, or what is waited for.

    Args:
        commands: Command lines of the job's living processes.
        lines: What the job has printed so far.
    """
    told = list(lines)
    if any("[miles-watchdog] ending" in line for line in told):
        return "the launcher is ending the job"
    if any(line.startswith(_UP) for line in told):
        return "a sync that has not ended after 5 s is reported"
    running = list(commands)
    engines = sum("miles.rollout.engine_server" in command for command in running)
    ranks = sum("miles.train_rank" in command for command in running)
    if not ranks:
        return f"{engines} engines started; the launcher loads torch"
    # Each process reads and links all of torch: most of the time on a machine with few cores.
    return f"{ranks} ranks started; they load torch, build their model and meet"
