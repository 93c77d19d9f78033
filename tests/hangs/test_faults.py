"""Parts of the watchdog die in a job that hangs: at most their own part of the report is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from _harness import END_WITHIN_S, Program, running, wait_for
from test_hangs import EIGHT_RANKS, check, culprits_are_no_victims, expected_of, ranks_named

from watchdog.exit_status import STALLED
from watchdog.node.duties import sentinel_pid
from watchdog.process_identity import started_ticks

pytestmark = pytest.mark.slow


def local_folder(program: Program) -> Path:
    """Where the black boxes of the job's ranks lie."""

    def look() -> Path | None:
        for link in program.watchdog_dir.glob(f"{program.run}/ranks/*.blackbox"):
            return link.resolve().parent
        return None

    return wait_for("a black box", look, 60)


def sentinel_of(program: Program) -> int:
    local = local_folder(program)
    return wait_for("a sentinel", lambda: sentinel_pid(local), 60)


def test_a_sentinel_that_is_killed_is_replaced(tmp_path):
    with running("rank_never_arrives", tmp_path, STALL_AFTER=60) as program:
        program.wait_until_ready()
        first = sentinel_of(program)

        os.kill(first, signal.SIGKILL)

        local = local_folder(program)
        second = wait_for("another", lambda: _other(sentinel_pid(local), first), 60)
        assert started_ticks(second) > 0


def _other(pid: int | None, than: int) -> int | None:
    return pid if pid not in (None, than) else None


def test_a_leader_that_dies_while_it_leads_is_followed_by_another(tmp_path):
    with running("rank_never_arrives", tmp_path, STALL_AFTER=3) as program:
        program.wait_until_ready()
        rank_zero = program.pids()["rank 0"]
        incident = program.watchdog_dir / program.run / "incidents" / "weight_sync-0001"
        wait_for("evidence of rank 0", lambda: _there(incident / "raw" / "rank-0.json"), 60)

        os.kill(rank_zero, signal.SIGKILL)
        report = program.report()

    assert ranks_named(report) == {0, 1, 2}


def _there(path: Path) -> bool | None:
    return True if path.exists() else None


def test_all_ranks_end_with_one_status_and_no_engine_is_left(tmp_path):
    with running("engine_never_answers", tmp_path, STALL_AFTER=3, ABORT_AFTER=4) as program:
        program.wait_until_ready()
        engine = program.pids()["engine 0"]
        ticks = started_ticks(engine)
        assert ticks
        program.report()

        program.process.wait(END_WITHIN_S)

        assert started_ticks(engine) != ticks
        exits = json.loads((program.folder / "exits.json").read_text())
    assert set(exits.values()) == {STALLED}


def test_a_rank_that_never_entered_the_sync_ends_with_the_same_status(tmp_path):
    with running("rank_zero_never_arrives", tmp_path, STALL_AFTER=3, ABORT_AFTER=4) as program:
        program.wait_until_ready()
        program.process.wait(END_WITHIN_S + 60)
        exits = json.loads((program.folder / "exits.json").read_text())

    assert set(exits.values()) == {STALLED}
    assert program.reports()


def test_a_stopped_rank_is_ended_too(tmp_path):
    with running("stopped", tmp_path, STALL_AFTER=3, ABORT_AFTER=4) as program:
        program.wait_until_ready()
        program.process.wait(END_WITHIN_S + 60)
        exits = json.loads((program.folder / "exits.json").read_text())

    assert exits["rank 1"] == -signal.SIGKILL
    assert {exits["rank 0"], exits["rank 2"]} == {STALLED}


def test_eight_ranks_are_reported_soon_though_three_of_them_cannot_speak(tmp_path):
    expected = expected_of(EIGHT_RANKS)

    with running(EIGHT_RANKS, tmp_path, STALL_AFTER=5) as program:
        program.wait_until_ready()
        busy = [times_slower()]
        report = program.report()
        written_s = program.reports()[0].stat().st_mtime
        busy.append(times_slower())
        wait_for("the verdict on stderr", lambda: is_said(program, report), END_WITHIN_S)

    check(report, expected)
    culprits_are_no_victims(report, expected)
    noticed_late_s = report["stall"]["waited_s"] - report["stall"]["deadline_s"]
    took_s = noticed_late_s + written_s - report["incident"]["started_at_s"]
    assert took_s < WITHIN_S * max(busy), f"{took_s:.1f} s; busy: {busy}"


WITHIN_S = 5.0
"""From the stall to the complete report, on a machine that has nothing else to do."""


def times_slower() -> float:
    """How many times longer than its CPU time a busy thread takes now; 1 where nobody disturbs.

    Of a machine that others use as well, a promise about seconds can ask no more.
    """
    began_s, began_cpu_s = time.monotonic(), time.thread_time()
    while time.thread_time() < began_cpu_s + 0.3:
        pass
    return max(1.0, (time.monotonic() - began_s) / 0.3)


def is_said(program: Program, report: dict[str, Any]) -> bool | None:
    """Whether standard error has the line with the state and the numbers of all culprits."""
    lines = program.log.read_text().splitlines()
    verdicts = [line for line in lines if f"{report['state'].upper()}: rank" in line]
    wanted = {str(one["rank"]) for one in report["culprits"]}
    return True if any(wanted <= set(re.findall(r"\d+", line)) for line in verdicts) else None
