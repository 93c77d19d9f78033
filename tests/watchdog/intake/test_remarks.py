"""What people write beside the files, and tables of calls."""

from __future__ import annotations

import pytest

from watchdog.evidence import Evidence
from watchdog.intake.log_lines.table import KNOWN_LINES
from watchdog.situation import Situation
from watchdog.verdict.duration import told_s

from .conftest import ReadFiles


def remarks(text: str) -> list[str]:
    return [kind for kind, _ in KNOWN_LINES.events(text) if kind == "remark_duration"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("hangs for 20 minutes already", 1200),
        ("half an hour like this", 1800),
        ("nothing since 12 minutes", 720),
        ("# same 20 min later", 1200),
        ("second dump 5 min later was the same", 300),
        ("curl :30000/metrics (08:12, 08:22: same)", 600),
        ("stuck since 10:00 (dumps of 10:45)", 2700),
    ],
)
def test_a_remark_tells_how_long_it_stands_still(
    read_files: ReadFiles, text: str, seconds: float
) -> None:
    evidence: Evidence = read_files({"note.txt": text + "\n"})

    assert told_s(Situation(evidence)) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "In step 3 the same thing hung for 19 minutes and then went on.",
        "it hangs for a minute each time",
        "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress",
        "hangs at the first update_weights!!",
        "job of 6 nodes, waits for rollouts",
    ],
)
def test_what_went_on_or_tells_no_time_is_no_remark(text: str) -> None:
    assert remarks(text) == []


def test_a_log_line_is_no_remark(read_files: ReadFiles) -> None:
    evidence = read_files({"a.log": "2026-08-12 10:00:00 blocked for 900 seconds\nstep 3 done\n"})

    assert Situation(evidence).remarks == ()


def test_the_time_of_a_dump_in_prose_is_a_look(read_files: ReadFiles) -> None:
    evidence = read_files(
        {
            "q.md": "is this a deadlock? (py-spy at 10:38)\n",
            "a.log": "2026-04-04 10:30:00 step 3 x\n",
        }
    )

    looks = Situation(evidence).observed_at_s
    said = [e.time_s for e in evidence.log_events if e.file == "a.log" and e.time_s]
    assert looks[-1] - said[0] == 8 * 60


def test_headings_inside_a_log_are_no_looks(read_files: ReadFiles) -> None:
    log = "2026-04-04 10:30:00 start\n=== 2026-04-04 10:31:00 epoch 2 ===\n"

    assert Situation(read_files({"a.log": log})).observed_at_s == ()


def test_silence_is_counted_from_the_last_line_that_says_something(read_files: ReadFiles) -> None:
    log = (
        "2026-04-04 10:30:00 [rank0] saving checkpoint at iteration 4 to /c\n"
        '2026-04-04 10:49:00 10.0.0.1:1 - "GET /health HTTP/1.1" 200 OK\n'
        "2026-04-04 10:50:00 NodeManager: 8 workers, 0 queued tasks (node_manager.cc:1)\n"
    )
    shell = "$ date\nSat Apr  4 10:50:00 UTC 2026\n"

    silent_s = Situation(read_files({"a.log": log, "shell.txt": shell})).silent_s

    assert silent_s is not None
    assert silent_s <= 20 * 60


@pytest.mark.parametrize(
    "table",
    [
        "NAME STATE ACTOR\nServer.wake_up RUNNING http_0\nServer.rpc PENDING_ARGS http_0 # by wd\n",
        "    TASK_ID   NAME             STATE          ACTOR\n"
        " 0  a1b2      Server.wake_up   RUNNING        http_0\n"
        " 1  a1b3      Server.rpc       PENDING_ARGS   http_0\n",
    ],
)
def test_a_table_of_tasks_shows_which_call_waits_behind_which(
    read_files: ReadFiles, table: str
) -> None:
    (call,) = Situation(read_files({"tasks.txt": table})).queued_calls

    assert call.running.fields["name"] == "Server.wake_up"
    assert call.pending.fields["name"] == "Server.rpc"


def test_written_bytes_under_bare_clocks_are_two_samples(read_files: ReadFiles) -> None:
    text = (
        "$ date +%T; grep write_bytes /proc/8803/io\n18:20:02\nwrite_bytes: 1000\n"
        "$ date +%T; grep write_bytes /proc/8803/io\n18:21:32\nwrite_bytes: 9000\n"
    )
    stack = 'Process 8803: python train.py\nThread 8803 (idle): "MainThread"\n    f (a.py:1)\n'

    evidence = read_files({"io.txt": text, "r3.txt": stack})
    process = next(p for p in evidence.processes if p.pid == 8803)

    first, second = process.activity
    assert (first.write_bytes, second.write_bytes) == (1000, 9000)
    assert process.rank == 3


@pytest.mark.parametrize("name", ["deepseek-r1.txt", "Qwen_R2_run.txt", "run-r1.txt"])
def test_the_r1_of_a_name_is_no_rank(read_files: ReadFiles, name: str) -> None:
    stack = 'Process 88: python train.py\nThread 88 (idle): "MainThread"\n    f (a.py:1)\n'

    assert read_files({name: stack}).processes[0].rank is None
