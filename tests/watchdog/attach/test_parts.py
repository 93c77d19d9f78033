"""What is read besides stacks: open logs, command lines, libraries; and the line for a chat."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from report_cases import native_lora

from watchdog.attach import libraries
from watchdog.attach.command_lines import flags_of
from watchdog.attach.observation import Seams, Wanted, observe
from watchdog.attach.open_logs import OpenLogs
from watchdog.capture.target import Target
from watchdog.discovery.jobs import Job, Member
from watchdog.discovery.processes import Seen
from watchdog.reports import chat_line
from watchdog.verdict.ended import MEANWHILE

TIME_OUT = "RuntimeError: [gloo] Timed out waiting 1800000ms for recv operation to complete"


@pytest.fixture
def writer(tmp_path):
    """A process that has a log open, and waits; and its log."""
    log = tmp_path / "rank.log"
    program = "import sys; open(sys.argv[2], 'a'); keep = open(sys.argv[1], 'a'); print(1, flush=True); input()"  # noqa: E501
    with subprocess.Popen(
        [sys.executable, "-c", program, str(log), str(tmp_path / "closed.log")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        process.stdout.readline()
        yield process, log
        process.communicate(b"\n", timeout=30)


def job_of(*members: Member) -> Job:
    return Job("job", members)


def member(pid: int, line: str = "python train.py", role="trainer", **more) -> Member:
    key = more.pop("key", f"{role} {pid}")
    return Member(Seen(pid, 1, 1, words=tuple(line.split())), role, key=key, **more)


def test_the_end_of_a_log_that_a_rank_has_open_is_read_as_that_ranks(writer):
    process, log = writer
    log.write_text(f"2026-01-01 10:00:00 INFO fine\n2026-01-01 10:30:00 ERROR {TIME_OUT}\n")

    logs = OpenLogs(job_of(member(process.pid, rank=3, key="rank 3")), "node-0").read()

    assert logs.files == (str(log),)
    events = [event for event in logs.parts.events if event.kind == "gloo_recv_timeout"]
    assert [event.who.rank for event in events] == [3]
    assert [gap.what for gap in logs.gaps] == ["output of rank 3"]


def test_of_a_long_log_only_the_end_is_read(writer):
    process, log = writer
    log.write_bytes(b"x" * 79 + b"\n" + (b"y" * 79 + b"\n") * 40_000 + TIME_OUT.encode() + b"\n")

    logs = OpenLogs(job_of(member(process.pid, rank=3, key="rank 3")), "node-0").read()

    texts = [event.text for event in logs.parts.events]
    assert any(TIME_OUT in text for text in texts)
    assert all("(last 1024 KiB)" in event.file for event in logs.parts.events)


def test_a_process_that_is_gone_has_no_logs():
    logs = OpenLogs(job_of(member(2**22 - 1)), "node-0").read()

    assert (logs.files, logs.parts.events) == ((), [])


def test_flags_are_those_of_the_driver_then_of_the_ranks_then_of_the_engines():
    job = job_of(
        member(11, "python train.py --colocate --lr 1", rank=0, key="rank 0"),
        member(12, "python train.py --colocate --lr 1", rank=1, key="rank 1"),
        member(13, "python -m sglang.launch_server --lr 9 --tp-size 2", "engine", key="engine 0"),
    )

    flags = {flag.name: flag for flag in flags_of(job)}

    assert {name: flag.value for name, flag in flags.items()} == {
        "colocate": True, "lr": 1, "tp_size": 2,
    }  # fmt: skip
    assert flags["lr"].origin == "command line of rank 0 (pid 11)"


def test_the_libraries_of_a_process_without_torch_are_none():
    assert libraries.collect(Target(os.getppid())).versions == {}


def test_the_line_for_a_chat_says_who_where_why_and_how_much_was_seen():
    case = native_lora()

    line = chat_line.render(*case.told)

    assert line.count("\n") == 1
    assert line.startswith("HUNG: rank 2 holds up 3 of 4 ranks in weight_sync; rank 2 (pid 4002")
    assert "cause missing_backup, confirmed" in line
    assert "seen 4 of 4 ranks on node-a" in line


RANK = """
import sys
print("ready", flush=True)
sys.stdin.read(1)
print(sys.argv[1], file=sys.stderr, flush=True)
sys.exit(1 if sys.argv[1] else 0)
"""


@pytest.fixture
def job_that_ends(tmp_path):
    """Look at three ranks that end between the two looks, and write a last line if there is one."""
    ranks = []
    environ = {**os.environ, "WORLD_SIZE": "3", "MASTER_ADDR": "node-0", "MASTER_PORT": "29500"}

    def look(last_line: str):
        for rank in range(3):
            with (tmp_path / f"rank{rank}.log").open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, "-c", RANK, last_line], env={**environ, "RANK": str(rank)},
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                )  # fmt: skip
            ranks.append(process)
            assert process.stdout.readline() == b"ready\n"
        return observe(
            Wanted(frozenset(rank.pid for rank in ranks), native=False),
            Seams(sleep=lambda _: [rank.communicate(b"x", timeout=30) for rank in ranks]),
        )

    yield look
    for rank in ranks:
        rank.kill()
        rank.communicate(timeout=30)


def test_a_job_that_ends_while_it_is_looked_at_is_not_called_crashed(job_that_ends):
    evidence, diagnosis = job_that_ends("")

    assert {p.status_detail for p in evidence.processes} == {MEANWHILE}
    assert diagnosis.verdict.state == "unknown"
    assert diagnosis.causes == ()
    assert not any("py-spy dump" in step for step in diagnosis.collect_next)
    assert chat_line.render(evidence, diagnosis, None).startswith(
        "UNKNOWN: the job ended while it was looked at; "
    )


def test_what_ranks_wrote_when_they_ended_meanwhile_is_read(job_that_ends):
    evidence, diagnosis = job_that_ends(f"Traceback (most recent call last):\n  x\n{TIME_OUT}")

    assert any("Timed out waiting" in event.text for event in evidence.log_events)
    assert diagnosis.verdict.reason != ""
