"""Parts of the watchdog die at random moments of an incident; the report comes all the same."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from watchdog.node.duties import sentinel_pid

WAYS = ("wait_in_barrier", "hold_the_gil", "never_arrives")


def local_folder(run) -> Path | None:
    links = (run.folder / "runs" / run.run / "ranks").glob("*.blackbox")
    return next((link.resolve().parent for link in links if link.is_symlink()), None)


def left_behind(run) -> list[str]:
    """Processes of the run that still are, by their environment."""
    mark = f"MILES_WATCHDOG_RUN={run.run}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (path / "environ").read_bytes().split(b"\0"):
                found.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


class Fault:
    """One thing that goes wrong, at a moment of the incident, drawn from a seed."""

    def __init__(self, dice: random.Random) -> None:
        self.moment = dice.choice(("at once", "evidence", "leader", "report soon"))
        self.delay_s = dice.choice((0.0, 0.1, 0.5))
        self.name = dice.choice(
            ("kill rank", "kill sentinel", "stop sentinel", "stop rank", "lose incidents folder")
        )
        self.rank = dice.randrange(3)

    def has_come(self, run) -> bool:
        found = {
            "at once": True,
            "evidence": bool(list(run.incidents.glob("*/raw/rank-*.json"))),
            "leader": bool(list(run.incidents.glob("*/leader-*.lock"))),
            "report soon": bool(list(run.incidents.glob("*/evidence.json"))),
        }
        return found[self.moment]

    def strike(self, run) -> None:
        if self.name == "lose incidents folder":
            # A file in its place: whatever is written from now on is refused.
            if not run.incidents.exists():
                run.incidents.parent.mkdir(parents=True, exist_ok=True)
                run.incidents.write_text("")
            return
        how = signal.SIGKILL if self.name.startswith("kill") else signal.SIGSTOP
        if self.name.endswith("rank"):
            os.kill(run.ranks[self.rank].pid, how)
            return
        local = local_folder(run)
        pid = None if local is None else sentinel_pid(local)
        if pid is not None:
            os.kill(pid, how)


def wait(condition, within_s: float, what: str) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, what
        threading.Event().wait(0.05)


def reports(run) -> list[Path]:
    substitute = run.folder / "tmp"
    return [*run.incidents.glob("*/report.json"), *substitute.rglob("report.json")]


def schedule(job, seed: int) -> None:
    dice = random.Random(seed)
    ways = dice.sample(WAYS, 3) if dice.random() < 0.5 else ["wait_in_barrier"] * 3
    run = job(*ways)
    said = f"seed {seed}: {ways}"
    for _ in range(dice.randint(1, 2)):
        fault = Fault(dice)
        said += f", {fault.name} {fault.rank} when {fault.moment} + {fault.delay_s}"
        wait(lambda: fault.has_come(run) or reports(run), 60, said)  # noqa: B023 (called here)
        threading.Event().wait(fault.delay_s)
        fault.strike(run)
    try:
        if _somebody_is_left(run, ways):
            wait(lambda: reports(run), 90, said)
            report = json.loads(reports(run)[0].read_text())
            named = {rank for group in report["groups"] for rank in group.get("ranks", ())}
            assert named | set(report.get("unaccounted", ())) == {0, 1, 2}, said
    finally:
        for rank in run.ranks:
            rank.kill()
            rank.wait(20)
        _release_sentinel(run)
    wait(lambda: not left_behind(run), 60, f"{said}: left {left_behind(run)}")


def _somebody_is_left(run, ways) -> bool:
    """Whether a rank inside the sync is alive: of a job without any there is nothing to say."""
    return any(
        rank.poll() is None and way != "never_arrives"
        for rank, way in zip(run.ranks, ways, strict=True)
    )


def _release_sentinel(run) -> None:
    local = local_folder(run)
    pid = None if local is None else sentinel_pid(local)
    if pid is not None:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_the_report_comes_whatever_dies(job, seed):
    schedule(job, seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(6, 2000))
def test_the_report_comes_whatever_dies_many_times(job, seed):
    schedule(job, seed)
